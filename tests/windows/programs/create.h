/* SPDX-License-Identifier: MIT */
/* Shared by several of the programs: a worker made in the documented way. */
#include <windows.h>

static HANDLE CreateUmsWorker(PUMS_COMPLETION_LIST list, PUMS_CONTEXT context,
                              LPTHREAD_START_ROUTINE start, LPVOID parameter, DWORD flags) {
    UMS_CREATE_THREAD_ATTRIBUTES as;
    LPPROC_THREAD_ATTRIBUTE_LIST attributes;
    HANDLE thread = NULL;
    SIZE_T size = 0;
    as.UmsVersion = UMS_VERSION;
    as.UmsContext = context;
    as.UmsCompletionList = list;
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    attributes = (LPPROC_THREAD_ATTRIBUTE_LIST)LocalAlloc(LPTR, size);
    if (attributes == NULL || !InitializeProcThreadAttributeList(attributes, 1, 0, &size))
        return NULL;
    if (UpdateProcThreadAttribute(attributes, 0, PROC_THREAD_ATTRIBUTE_UMS_THREAD, &as, sizeof(as),
                                  NULL, NULL))
        thread = CreateRemoteThreadEx(GetCurrentProcess(), NULL, 0, start, parameter, flags,
                                      attributes, NULL);
    DeleteProcThreadAttributeList(attributes);
    LocalFree(attributes);
    return thread;
}

static inline BOOL HasEnded(PUMS_CONTEXT context) {
    BOOLEAN ended = FALSE;
    QueryUmsThreadInformation(context, UmsThreadIsTerminated, &ended, sizeof(ended), NULL);
    return ended;
}
