// SPDX-License-Identifier: MIT
#include <windows.h>

static DWORD WINAPI set(LPVOID argument) {
    *(int*)argument = 0;
    return 0;
}

int main(void) {
    int result = 1;
    HANDLE thread = CreateThread(NULL, 0, set, &result, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    return result;
}
