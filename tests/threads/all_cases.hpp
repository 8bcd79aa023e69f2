// SPDX-License-Identifier: MIT
//
// Included once for each library, within a namespace: no #pragma once.

#include "threads/helpers_cases.hpp"

#include "threads/barrier_cases.hpp"
#include "threads/condition_variable_cases.hpp"
#include "threads/future_cases.hpp"
#include "threads/jthread_cases.hpp"
#include "threads/latch_cases.hpp"
#include "threads/lock_cases.hpp"
#include "threads/mutex_cases.hpp"
#include "threads/once_cases.hpp"
#include "threads/semaphore_cases.hpp"
#include "threads/stop_token_cases.hpp"
#include "threads/this_thread_cases.hpp"
#include "threads/thread_cases.hpp"
