/* SPDX-License-Identifier: MIT */
#include "impl/annotations.h" /* What windows.h has of them. */
