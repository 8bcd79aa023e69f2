/* SPDX-License-Identifier: MIT */
#ifndef UMS_MPI_H
#define UMS_MPI_H

/* ums/mpi.h: what libums_mpi adds to MPI's own calls (docs/mpi.md).
 *
 * A program that links libums_mpi_openmpi or libums_mpi_mpich before its MPI calls MPI_Recv() and
 * its like in fibers as it always did: the fiber parks, and the others run on. This header is only
 * for receives that give up.
 */

#include <mpi.h>
#include <stdint.h>

#include "ums/ums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MPI_Recv() that also ends at the deadline with -ETIMEDOUT and, if `stop` is not NULL, once a stop
 * is requested, with -ECANCELED: the receive is cancelled then, and takes no message. A message
 * that comes at that moment wins. Any other result is MPI's: MPI_SUCCESS, or an error after the
 * communicator's handler was called. `status` may be MPI_STATUS_IGNORE. -EPERM: the caller is no
 * fiber. */
UMS_API UMS_CHECK int ums_mpi_recv_until(void* buffer, int count, MPI_Datatype datatype, int source,
                                         int tag, MPI_Comm comm, MPI_Status* status,
                                         int64_t deadline, ums_stop_t* stop);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* UMS_MPI_H */
