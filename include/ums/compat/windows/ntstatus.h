/* SPDX-License-Identifier: MIT */
#include "impl/errors.h"
