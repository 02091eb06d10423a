// What an extension of Python in Fortran has of its own under Open MPI, if it is loaded before the MPI.

int mpi_fortran_in_place_;
