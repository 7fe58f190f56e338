/* A program that marks with LIKWID, PAPI and Caliper, linked with real.c. */
#include <stdio.h>

int likwid_markerStartRegion(const char* region);
int likwid_markerStopRegion(const char* region);
int PAPI_hl_region_begin(const char* region);
int PAPI_hl_region_end(const char* region);
void cali_begin_region(const char* region);
void cali_end_region(const char* region);
void cali_begin_phase(const char* region);
void cali_end_phase(const char* region);
void cali_begin_comm_region(const char* region);
void cali_end_comm_region(const char* region);
int MPI_Pcontrol(const int level, ...);
void mpi_pcontrol_(const int* level);

int main(void) {
  const int open = 7;
  const int close = -7;
  cali_begin_phase("p");
  cali_begin_region("r");
  cali_begin_comm_region("c");
  cali_end_comm_region("c");
  cali_end_region("r");
  cali_end_phase("p");
  printf("= %d\n", likwid_markerStartRegion("l"));
  printf("= %d\n", PAPI_hl_region_begin("h"));
  printf("= %d\n", PAPI_hl_region_end("h"));
  printf("= %d\n", likwid_markerStopRegion("l"));
  printf("= %d\n", MPI_Pcontrol(100, "kept"));
  printf("= %d\n", MPI_Pcontrol(-100, "kept"));
  mpi_pcontrol_(&open);
  mpi_pcontrol_(&close);
  return 0;
}
