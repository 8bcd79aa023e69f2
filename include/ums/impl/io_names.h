/* SPDX-License-Identifier: MIT */
#ifndef UMS_IMPL_IO_NAMES_H
#define UMS_IMPL_IO_NAMES_H

/* ums/impl/io_names.h: POSIX's names for I/O, as other names of what ums/ums_posix.h declares.
 *
 * ums/ums_posix.h includes this header where UMS_IO_NAMES is defined. Do not include it yourself.
 *
 * The compiler renames a function where the C library's headers declare it. So no type has to be
 * known here, and whatever else has one of these names, such as a member of a struct, keeps it.
 * Rejected: macros, as there are for threads. They would rename members and variables as well, in
 * C++ those of the standard library, and would have to come after the C library's headers, for
 * which a file may first define other macros (_GNU_SOURCE). */

#if defined __USE_FORTIFY_LEVEL && __USE_FORTIFY_LEVEL > 0
#error "ums/ums_posix.h must come before the C library's headers: cc -include ums/ums_posix.h"
#endif
/* Its inline functions call the C library by names that nothing can change. */
#undef _FORTIFY_SOURCE
#ifdef __LP64__
/* Changes nothing there but the name of fcntl(). */
#undef _FILE_OFFSET_BITS
#endif

#pragma redefine_extname read ums_posix_read
#pragma redefine_extname readv ums_posix_readv
#pragma redefine_extname write ums_posix_write
#pragma redefine_extname writev ums_posix_writev
#pragma redefine_extname socket ums_posix_socket
#pragma redefine_extname socketpair ums_posix_socketpair
#pragma redefine_extname recv ums_posix_recv
#pragma redefine_extname recvfrom ums_posix_recvfrom
#pragma redefine_extname recvmsg ums_posix_recvmsg
#pragma redefine_extname send ums_posix_send
#pragma redefine_extname sendto ums_posix_sendto
#pragma redefine_extname sendmsg ums_posix_sendmsg
#pragma redefine_extname connect ums_posix_connect
#pragma redefine_extname accept ums_posix_accept
#pragma redefine_extname accept4 ums_posix_accept4
#pragma redefine_extname poll ums_posix_poll
#pragma redefine_extname ppoll ums_posix_ppoll
#pragma redefine_extname select ums_posix_select
#pragma redefine_extname pselect ums_posix_pselect
#pragma redefine_extname close ums_posix_close
#pragma redefine_extname dup ums_posix_dup
#pragma redefine_extname dup2 ums_posix_dup2
#pragma redefine_extname dup3 ums_posix_dup3
#pragma redefine_extname pipe ums_posix_pipe
#pragma redefine_extname pipe2 ums_posix_pipe2
#pragma redefine_extname fcntl ums_posix_fcntl
#pragma redefine_extname fcntl64 ums_posix_fcntl
#pragma redefine_extname fdopen ums_posix_fdopen
/* A child that shares the parent's memory would close what libums knows of the parent. */
#pragma redefine_extname vfork fork
#pragma redefine_extname sleep ums_posix_sleep
#pragma redefine_extname usleep ums_posix_usleep
#pragma redefine_extname nanosleep ums_posix_nanosleep
#pragma redefine_extname clock_nanosleep ums_posix_clock_nanosleep
#pragma redefine_extname getaddrinfo ums_posix_getaddrinfo

/* errno is (*__errno_location ()), and the declaration of that function promises an address that
 * never changes, so the compiler would keep it across a wait. Here its call, without an argument,
 * becomes another one. Its declaration, where the argument is `void`, stays what it is. */
#define __errno_location(nothing_or_void) ums_errno_##nothing_or_void
#define ums_errno_void __errno_location(void)
#define ums_errno_ ums_errno_location()

#ifdef __cplusplus
extern "C" {
#endif
int* ums_errno_location(void);
#ifdef __cplusplus
}
#endif

#endif /* UMS_IMPL_IO_NAMES_H */
