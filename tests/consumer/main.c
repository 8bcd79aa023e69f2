// SPDX-License-Identifier: MIT
#include <ums/ums.h>

static void set(void* argument) { *(int*)argument = 0; }

int main(void) {
    int result = 1;
    return ums_run(NULL, set, &result) == 0 ? result : 2;
}
