/* SPDX-License-Identifier: MIT */
#include "winternl.h" /* Another name of it. */
