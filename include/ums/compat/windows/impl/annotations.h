/* SPDX-License-Identifier: MIT */
#ifndef UMS_WINDOWS_IMPL_ANNOTATIONS_H
#define UMS_WINDOWS_IMPL_ANNOTATIONS_H

/* impl/annotations.h: what programs tell Microsoft's analyser, in the new spelling and the old:
 * nothing here. */

#ifdef __cplusplus
/* The standard library has parameters of the names __in, __out and __success: its headers come
 * first. */
#include <algorithm>
#include <istream>
#include <locale>
#include <memory>
#include <ostream>
#include <regex>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#endif

#define IN
#define OUT
#define OPTIONAL
#define _In_
#define _In_opt_
#define _In_z_
#define _In_opt_z_
#define _Out_
#define _Out_opt_
#define _Inout_
#define _Inout_opt_
#define _Inout_z_
#define _Outptr_
#define _Outptr_opt_
#define _Outptr_result_maybenull_
#define _COM_Outptr_
#define _Ret_maybenull_
#define _Ret_notnull_
#define _Reserved_
#define _Pre_notnull_
#define _Pre_maybenull_
#define _Post_invalid_
#define _Post_ptr_invalid_
#define _Frees_ptr_
#define _Frees_ptr_opt_
#define _Notnull_
#define _Maybenull_
#define _Null_terminated_
#define _Printf_format_string_
#define _Must_inspect_result_
#define _Check_return_
#define _Use_decl_annotations_
#define _Interlocked_operand_
#define _Points_to_data_
#define _Field_z_
#define _In_reads_(what)
#define _In_reads_opt_(what)
#define _In_reads_bytes_(what)
#define _In_reads_bytes_opt_(what)
#define _In_range_(what)
#define _Out_writes_(what)
#define _Out_writes_opt_(what)
#define _Out_writes_z_(what)
#define _Out_writes_bytes_(what)
#define _Out_writes_bytes_opt_(what)
#define _Out_writes_to_ptr_(what)
#define _Inout_updates_(what)
#define _Inout_updates_bytes_(what)
#define _Outptr_result_buffer_(what)
#define _Field_size_(what)
#define _Field_size_bytes_(what)
#define _Field_range_(what)
#define _Success_(what)
#define _Function_class_(what)
#define _Acquires_lock_(what)
#define _Acquires_exclusive_lock_(what)
#define _Acquires_shared_lock_(what)
#define _Releases_lock_(what)
#define _Releases_exclusive_lock_(what)
#define _Releases_shared_lock_(what)
#define _Requires_lock_held_(what)
#define _Requires_lock_not_held_(what)
#define _Guarded_by_(what)
#define _Has_lock_kind_(what)
#define _Analysis_assume_(what) ((void)0)
#define _Ret_writes_(what)
#define _Pre_satisfies_(what)
#define _Post_satisfies_(what)
#define _Out_writes_to_(size, count)
#define _Out_writes_bytes_to_(size, count)
#define _Inout_updates_to_(size, count)
#define _When_(condition, what)
#define _At_(target, what)

#define __in
#define __out
#define __inout
#define __in_opt
#define __out_opt
#define __inout_opt
#define __in_z
#define __in_z_opt
#define __out_z
#define __deref_in
#define __deref_out
#define __deref_out_opt
#define __deref_inout
#define __checkReturn
#define __nullterminated
#define __notnull
#define __maybenull
#define __format_string
#define __in_ecount(what)
#define __in_ecount_opt(what)
#define __in_bcount(what)
#define __in_bcount_opt(what)
#define __out_ecount(what)
#define __out_ecount_opt(what)
#define __out_bcount(what)
#define __out_bcount_opt(what)
#define __inout_ecount(what)
#define __inout_bcount(what)
#define __success(what)
#define __bcount(what)
#define __ecount(what)
#define __out_ecount_part(size, count)
#define __out_bcount_part(size, count)
#define __drv_aliasesMem
#define __drv_freesMem(what)
#define __analysis_assume(what) ((void)0)

#endif
