/* SPDX-License-Identifier: MIT */
#include "SDKDDKVer.h" /* Another name of it. */
