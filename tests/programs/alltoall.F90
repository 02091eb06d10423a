! MPI_Alltoall and MPI_Alltoallv from Fortran, with every element checked: by `use mpi`, or with -DF08 by `use mpi_f08`.
program alltoall
#ifdef F08
   use mpi_f08
#else
   use mpi
#endif
   implicit none
   integer, parameter :: elements = 3000
   integer :: rank, ranks, code, from, i, wrong
   integer, allocatable :: sent(:), come(:), counts(:), places(:)

   call MPI_Init(code)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
   allocate (sent(elements*ranks), come(elements*ranks), counts(ranks), places(ranks))
   counts = elements
   places = [(i*elements, i=0, ranks - 1)]
   wrong = 0

   call fill(sent)
   come = -1
   call MPI_Alltoall(sent, elements, MPI_INTEGER, come, elements, MPI_INTEGER, MPI_COMM_WORLD, code)
   call check('MPI_Alltoall')
   come = -1
   call MPI_Alltoallv(sent, counts, places, MPI_INTEGER, come, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
   call check('MPI_Alltoallv')
   call fill(come)
   call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, come, elements, MPI_INTEGER, MPI_COMM_WORLD, code)
   call check('MPI_Alltoall in place')
   call fill(come)
   call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, come, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
   call check('MPI_Alltoallv in place')
#ifdef F08
   ! The error code may be left out.
   come = -1
   call MPI_Alltoall(sent, elements, MPI_INTEGER, come, elements, MPI_INTEGER, MPI_COMM_WORLD)
   call check('MPI_Alltoall without a code')
#endif
   if (rank == 0) print *, 'all as sent'
   call MPI_Finalize(code)

contains

   ! What each rank sends: place i for rank `to`.
   subroutine fill(buffer)
      integer, intent(out) :: buffer(:)
      integer :: to
      do to = 0, ranks - 1
         do i = 1, elements
            buffer(to*elements + i) = rank*1000003 + to*10007 + i
         end do
      end do
   end subroutine

   subroutine check(what)
      character(*), intent(in) :: what
      if (code /= MPI_SUCCESS) wrong = wrong + 1
      do from = 0, ranks - 1
         do i = 1, elements
            if (come(from*elements + i) /= from*1000003 + rank*10007 + i) wrong = wrong + 1
         end do
      end do
      if (wrong > 0) then
         print *, what, ': rank', rank, 'has', wrong, 'that are wrong'
         call MPI_Abort(MPI_COMM_WORLD, 1, code)
      end if
   end subroutine
end program
