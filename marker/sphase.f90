! SPDX-License-Identifier: MIT
!
! Mark the phases of a Fortran program (Fortran 2003), over libsphase:
!
!     use sphase
!     call sphase_begin("solve")
!     call sphase_attr("cells", "1000000")
!     call sphase_value("residual", residual)
!     call sphase_end("solve")
!
! Compile this file with the program (module files belong to one compiler) and link with -lsphase.
! Blanks at the end of a name do not count. What holds for every call: sphase.h.
module sphase
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_char
  implicit none
  private
  public :: sphase_begin, sphase_end, sphase_value, sphase_attr, sphase_active

  interface
    function c_begin(name) bind(c, name="sphase_begin") result(depth)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: depth
    end function
    function c_end(name) bind(c, name="sphase_end") result(depth)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: depth
    end function
    subroutine c_value(name, number) bind(c, name="sphase_value")
      import :: c_char, c_double
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value, intent(in) :: number
    end subroutine
    subroutine c_attr(key, text) bind(c, name="sphase_attr")
      import :: c_char
      character(kind=c_char), intent(in) :: key(*), text(*)
    end subroutine
    function c_active() bind(c, name="sphase_active") result(active)
      import :: c_int
      integer(c_int) :: active
    end function
  end interface

contains

  subroutine sphase_begin(name)
    character(*), intent(in) :: name
    integer(c_int) :: depth
    depth = c_begin(trim(name) // c_null_char)
  end subroutine

  !> Without a name: the innermost phase.
  subroutine sphase_end(name)
    character(*), intent(in), optional :: name
    integer(c_int) :: depth
    if (present(name)) then
      depth = c_end(trim(name) // c_null_char)
    else
      depth = c_end(c_null_char)
    end if
  end subroutine

  subroutine sphase_value(name, number)
    character(*), intent(in) :: name
    real(c_double), intent(in) :: number
    call c_value(trim(name) // c_null_char, number)
  end subroutine

  subroutine sphase_attr(key, text)
    character(*), intent(in) :: key, text
    call c_attr(trim(key) // c_null_char, trim(text) // c_null_char)
  end subroutine

  !> Whether the markers of this process are recorded.
  function sphase_active() result(active)
    logical :: active
    active = c_active() /= 0
  end function

end module
