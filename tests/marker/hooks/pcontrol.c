/* An MPI program that marks by MPI_Pcontrol. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  int sum = 0;
  if (getenv("SPHASE_PCONTROL_NAMES") == NULL) sum += MPI_Pcontrol(1);
  sum += MPI_Pcontrol(1, "setup");
  sum += MPI_Pcontrol(5);
  sum += MPI_Pcontrol(6);
  sum += MPI_Pcontrol(-6);
  sum += MPI_Pcontrol(-5);
  sum += MPI_Pcontrol(-1, "setup");
  sum += MPI_Pcontrol(1, (const char*)1);    /* no text there */
  sum += MPI_Pcontrol(1, (const char*)&sum); /* readable, but no text */
  sum += MPI_Pcontrol(0);
  printf("sum %d\n", sum);
  MPI_Finalize();
  return 0;
}
