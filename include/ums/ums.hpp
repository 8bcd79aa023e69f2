// SPDX-License-Identifier: MIT
#pragma once

// ums/ums.hpp: everything.

#include "ums/cluster.hpp"
#include "ums/deadline.hpp"
#include "ums/deadlock.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_ref.hpp"
#include "ums/jfiber.hpp"
#include "ums/mutex.hpp"
#include "ums/options.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"
