/* SPDX-License-Identifier: MIT */
#include "windows.h" /* Another name of it. */
