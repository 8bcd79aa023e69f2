// SPDX-License-Identifier: MIT
#pragma once

// support/one_processor.hpp: for tests in which fibers take turns in a known order: one processor,
// which is never handed off. With a detector, a fiber that waits for a page or for the allocator's
// lock loses its turn to the next fiber now and then, on a busy machine or under a sanitizer.

#include "ums/options.hpp"

inline const ums::options one_processor{.processors = 1, .block = ums::block_detection::off};
