program regions
  use mpi
  integer :: failed
  call MPI_Init(failed)
  call MPI_Pcontrol(8)
  call MPI_Pcontrol(-8)
  call MPI_Finalize(failed)
end program
