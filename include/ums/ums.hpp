// SPDX-License-Identifier: MIT
#pragma once

// ums/ums.hpp: everything.

#include "ums/barrier.hpp"
#include "ums/cluster.hpp"
#include "ums/condition_variable.hpp"
#include "ums/deadline.hpp"
#include "ums/event.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_ref.hpp"
#include "ums/jfiber.hpp"
#include "ums/latch.hpp"
#include "ums/mutex.hpp"
#include "ums/once.hpp"
#include "ums/options.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/shared_mutex.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"
#include "ums/wait_group.hpp"
