! SPDX-License-Identifier: MIT
! gfortran sphase.f90 phases.f90 -lsphase; srun --phase-telemetry ./a.out
program phases
  use sphase
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  character(32) :: name = "iterate"
  integer :: i

  call sphase_begin("solve")
  call sphase_attr("cells", "1000000")
  do i = 1, 2
    call sphase_begin(name)
    call sphase_value("residual", 1.0_c_double / i)
    call sphase_end(name)
  end do
  call sphase_end()
  if (.not. sphase_active()) print *, "not recorded"
end program
