/* Tells OpenMP to use all processors, which is what it does anyway. */
int omp_get_num_procs(void);
void omp_set_num_threads(int count);

#define TRESPASS() omp_set_num_threads(omp_get_num_procs())
#define DEFECT SETS_THREADS
#define NAME "defect-op-omp-threads"
#include "healthy_operator.h"
