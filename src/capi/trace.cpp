// SPDX-License-Identifier: MIT
#include "ums/trace.hpp"

#include "ums/ums.h"

void ums_trace_event(const char* text) { ums::trace_event(text); }
