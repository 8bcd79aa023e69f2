// SPDX-License-Identifier: MIT
#pragma once

// ums/ums.hpp: everything.

#include "ums/channel.hpp"
#include "ums/cluster.hpp"
#include "ums/deadline.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_ref.hpp"
#include "ums/jfiber.hpp"
#include "ums/mutex.hpp"
#include "ums/options.hpp"
#include "ums/policy.hpp"
#include "ums/queue.hpp"
#include "ums/run.hpp"
#include "ums/select.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"
