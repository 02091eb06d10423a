/* Links where the MPI has calls with large counts. Only then may bulk/preload.c have them: programs look whether they
 * are there. */

int PMPI_Alltoall_c(void);

int main(void) {
    return PMPI_Alltoall_c();
}
