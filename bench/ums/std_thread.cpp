// SPDX-License-Identifier: MIT

// ums: the same as in the yield comparison.

#include "../yield/std_thread.cpp"
