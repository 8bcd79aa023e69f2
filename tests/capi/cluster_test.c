// SPDX-License-Identifier: MIT
// variants: migrate
#include <pthread.h>

#include "check.h"

static void park_once(void* argument) {
    (void)argument;
    ums_this_fiber_park();
}

static void add_one(void* argument) { atomic_fetch_add((atomic_int*)argument, 1); }

static void use_one(void* argument) {
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    options.name = "background";
    options.processors = 2;
    options.policy = UMS_POLICY_FIFO;
    ums_cluster_t* cluster = NULL;
    CHECK_IS(0, ums_cluster_create(&cluster, &options));
    CHECK_IS(2, ums_cluster_processors(cluster));
    char name[32], cut[5];
    CHECK_IS(10, ums_cluster_name(cluster, name, sizeof name));
    CHECK(strcmp(name, "background") == 0);
    CHECK_IS(10, ums_cluster_name(cluster, cut, sizeof cut));
    CHECK(strcmp(cut, "back") == 0);

    unsigned index = 0;
    CHECK_IS(0, ums_cluster_add_processor(cluster, &index));
    CHECK_IS(2, index);
    CHECK_IS(0, ums_cluster_add_processor(cluster, NULL));
    CHECK_IS(4, ums_cluster_processors(cluster));

    ums_fiber_options_t there = UMS_FIBER_OPTIONS_INIT;
    there.cluster = cluster;
    ums_fiber_t fiber;
    CHECK_IS(0, ums_fiber_create(&fiber, &there, add_one, argument));
    join(&fiber);

    CHECK_IS(0, ums_cluster_pause(cluster));
    atomic_int* const count = argument;
    const int before = *count;
    CHECK_IS(0, ums_fiber_create(&fiber, &there, add_one, argument));
    CHECK_IS(0, ums_cluster_pause(cluster));
    CHECK_IS(0, ums_cluster_resume(cluster));
    ums_this_fiber_yield();
    CHECK_IS(before, *count);
    CHECK_IS(0, ums_cluster_resume(cluster));
    CHECK_IS(-EPERM, ums_cluster_resume(cluster));
    join(&fiber);

    while (ums_cluster_processors(cluster) > 1) CHECK_IS(0, ums_cluster_remove_processor(cluster));
    CHECK_IS(-EINVAL, ums_cluster_remove_processor(cluster));
    CHECK_IS(-EINVAL, ums_cluster_destroy(ums_cluster_standard()));
    CHECK_IS(0, ums_cluster_destroy(cluster));

    CHECK_IS(0, ums_cluster_create(&cluster, NULL));
    CHECK_IS(1, ums_cluster_processors(cluster));
    CHECK_IS(0, ums_cluster_destroy(cluster));
}
static void clusters_come_and_go(void) {
    atomic_int count = 0;
    on_a_fiber_and_on_a_thread(use_one, &count);
    CHECK_IS(4, count);
}

static void refuse(void* argument) {
    ums_cluster_t* cluster = ums_cluster_standard();
    (void)argument;
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    options.processors = 0;
    CHECK_IS(-EINVAL, ums_cluster_create(&cluster, &options));
    CHECK(cluster == NULL);
    options.processors = 1025;
    CHECK_IS(-EINVAL, ums_cluster_create(&cluster, &options));
    options = (ums_cluster_options_t)UMS_CLUSTER_OPTIONS_INIT;
    options.policy = UMS_POLICY_FAIR_SHARE + 1;
    CHECK_IS(-EINVAL, ums_cluster_create(&cluster, &options));
    options = (ums_cluster_options_t)UMS_CLUSTER_OPTIONS_INIT;
    options.size = 0;
    CHECK_IS(-EINVAL, ums_cluster_create(&cluster, &options));
}
static void bad_clusters_are_refused(void) {
    ums_cluster_t* cluster;
    CHECK_IS(-EPERM, ums_cluster_create(&cluster, NULL));
    on_fibers(1, refuse, NULL);
}

static void migrate(void* argument) {
    ums_cluster_t* cluster;
    (void)argument;
    CHECK_IS(0, ums_cluster_create(&cluster, NULL));
    for (int i = 0; i < 10; ++i) {
        CHECK_IS(0, ums_this_fiber_migrate(cluster));
        CHECK_IS(0, ums_this_fiber_migrate(ums_cluster_standard()));
    }
    CHECK_IS(0, ums_cluster_destroy(cluster));
}
static void fibers_migrate_and_threads_do_not(void) {
    on_fibers(1, migrate, NULL);
    CHECK_IS(0, ums_runtime_start(NULL));
    CHECK_IS(-EPERM, ums_this_fiber_migrate(ums_cluster_standard()));
    CHECK_IS(0, ums_runtime_stop());
}

static void go_from_place_to_place(void* argument) {
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    ums_cluster_t* cluster;
    ums_cluster_t* other;
    unsigned index = 9;
    (void)argument;
    options.processors = 3;
    CHECK_IS(0, ums_cluster_create(&cluster, &options));
    CHECK_IS(0, ums_cluster_create(&other, NULL));
    for (unsigned i = 0; i < 30; ++i) CHECK_IS(0, ums_this_fiber_migrate_to(cluster, i % 3));
    CHECK_IS(-EINVAL, ums_this_fiber_migrate_to(cluster, 3));
    CHECK_IS(-EDEADLK, ums_cluster_destroy(cluster));

    CHECK_IS(0, ums_this_fiber_migrate(ums_cluster_standard()));
    CHECK_IS(0, ums_cluster_move_processor(cluster, other, &index));
    CHECK_IS(1, index);
    CHECK_IS(0, ums_cluster_move_processor(cluster, other, NULL));
    CHECK_IS(1, ums_cluster_processors(cluster));
    CHECK_IS(3, ums_cluster_processors(other));
    CHECK_IS(-EINVAL, ums_cluster_move_processor(cluster, other, &index));
    CHECK_IS(-EINVAL, ums_cluster_move_processor(other, other, &index));
    CHECK_IS(0, ums_cluster_destroy(other));

    options.cpus = "0-";
    CHECK_IS(-EINVAL, ums_cluster_create(&other, &options));
    options.cpus = "1023";
    CHECK_IS(-EOPNOTSUPP, ums_cluster_create(&other, &options));
    options.cpus = "auto";
    CHECK_IS(0, ums_cluster_create(&other, &options));
    CHECK_IS(0, ums_cluster_destroy(other));
    CHECK_IS(0, ums_cluster_destroy(cluster));
}
static void fibers_and_processors_go_where_they_are_told(void) {
    on_fibers(1, go_from_place_to_place, NULL);
    CHECK_IS(0, ums_runtime_start(NULL));
    CHECK_IS(-EPERM, ums_this_fiber_migrate_to(ums_cluster_standard(), 0));
    CHECK_IS(0, ums_runtime_stop());
}

static void post_some(void* argument) {
    atomic_int* count = argument;
    ums_cluster_t* cluster;
    ums_fiber_options_t options = UMS_FIBER_OPTIONS_INIT;
    void* arguments[100];
    for (int i = 0; i < 100; ++i) arguments[i] = count;
    CHECK_IS(0, ums_cluster_create(&cluster, NULL));
    CHECK_IS(0, ums_cluster_post(cluster, NULL, add_one, count));
    options.name = "posted";
    CHECK_IS(0, ums_cluster_post(cluster, &options, add_one, count));
    CHECK_IS(0, ums_cluster_post_each(cluster, &options, add_one, arguments, 100));
    CHECK_IS(0, ums_cluster_post_each(cluster, NULL, add_one, arguments, 0));
    options.launch = UMS_LAUNCH_DISPATCH;
    CHECK_IS(-EINVAL, ums_cluster_post_each(cluster, &options, add_one, arguments, 1));
    options.launch = UMS_LAUNCH_POST;
    options.cluster = ums_cluster_standard();
    CHECK_IS(-EINVAL, ums_cluster_post(cluster, &options, add_one, count));
    CHECK_IS(-EINVAL, ums_cluster_post(cluster, NULL, NULL, count));
    CHECK_IS(-EINVAL, ums_cluster_post_each(cluster, NULL, NULL, arguments, 1));
    CHECK_IS(0, ums_cluster_destroy(cluster)); /* Waits for all of them. */
}
static void functions_are_posted_to_a_cluster(void) {
    atomic_int count = 0;
    on_a_fiber_and_on_a_thread(post_some, &count);
    CHECK_IS(2 * 102, count);
}

static void unpark_some(void* argument) {
    ums_fiber_t all[50];
    ums_ref_t refs[50];
    (void)argument;
    for (int i = 0; i < 50; ++i) {
        all[i] = start(park_once, NULL);
        refs[i] = ums_fiber_ref(&all[i]);
    }
    for (int i = 0; i < 3; ++i) ums_this_fiber_yield();
    ums_ref_unpark_all(refs, 50);
    ums_ref_unpark_all(refs, 0);
    for (int i = 0; i < 50; ++i) join(&all[i]);
}
static void many_fibers_are_unparked_at_once(void) {
    on_a_fiber_and_on_a_thread(unpark_some, NULL);
}

/* --- A user's own policy: what became ready last runs first, or what became ready first --- */

static void sort_parked(void* argument) {
    ums_fiber_t all[3];
    ums_ordered_queue_t queue = UMS_ORDERED_QUEUE_INIT;
    (void)argument;
    /* They are parked or new, so nothing else uses their links on the one processor that this fiber
     * keeps. */
    for (int i = 0; i < 3; ++i) CHECK_IS(0, ums_fiber_create(&all[i], NULL, park_once, NULL));
    for (int i = 0; i < 3; ++i) ums_this_fiber_yield();
    ums_ordered_queue_push(&queue, ums_fiber_ref(&all[0]), 7);
    ums_ordered_queue_push(&queue, ums_fiber_ref(&all[1]), 5);
    ums_ordered_queue_push(&queue, ums_fiber_ref(&all[2]), 7);
    CHECK_IS(3, ums_ordered_queue_size(&queue));
    CHECK_IS(5, ums_ordered_queue_front_key(&queue));
    const int order[] = {1, 0, 2};
    for (int i = 0; i < 3; ++i)
        CHECK(ums_ordered_queue_pop_front(&queue).who == ums_fiber_ref(&all[order[i]]).who);
    CHECK(ums_ordered_queue_pop_front(&queue).who == NULL);
    for (int i = 0; i < 3; ++i) {
        ums_ref_unpark(ums_fiber_ref(&all[i]));
        CHECK_IS(0, ums_fiber_join(&all[i]));
    }
}
static void an_ordered_queue_gives_the_lowest_key_first(void) {
    ums_options_t options = UMS_OPTIONS_INIT;
    options.processors = 1;
    options.block = UMS_BLOCK_OFF; /* A hand-off would let another fiber come between. */
    CHECK_IS(0, ums_run(&options, sort_parked, NULL));
}

struct stack_policy {
    pthread_mutex_t lock;
    ums_fiber_queue_t queue;
    int attached, handed, destroyed;
    bool first_in_first_out;
};

static void* stack_make(void* argument) {
    struct stack_policy* p = argument;
    pthread_mutex_init(&p->lock, NULL);
    p->queue = (ums_fiber_queue_t)UMS_FIBER_QUEUE_INIT;
    return p;
}
static void stack_destroy(void* self) {
    struct stack_policy* p = self;
    CHECK_IS(0, ums_fiber_queue_size(&p->queue));
    pthread_mutex_destroy(&p->lock);
    ++p->destroyed;
}
static void stack_attach(void* self, unsigned processor) {
    struct stack_policy* p = self;
    (void)processor;
    pthread_mutex_lock(&p->lock);
    ++p->attached;
    pthread_mutex_unlock(&p->lock);
}
static void stack_detach(void* self, unsigned processor) {
    struct stack_policy* p = self;
    (void)processor;
    pthread_mutex_lock(&p->lock);
    --p->attached;
    pthread_mutex_unlock(&p->lock);
}
static void stack_ready(void* self, ums_ref_t fiber, unsigned processor) {
    struct stack_policy* p = self;
    pthread_mutex_lock(&p->lock);
    p->handed += processor == UMS_OUTSIDE || processor < 1024;
    if (p->first_in_first_out)
        ums_fiber_queue_push_back(&p->queue, fiber);
    else
        ums_fiber_queue_push_front(&p->queue, fiber);
    pthread_mutex_unlock(&p->lock);
}
static ums_ref_t stack_next(void* self, unsigned processor) {
    struct stack_policy* p = self;
    (void)processor;
    pthread_mutex_lock(&p->lock);
    const ums_ref_t next = ums_fiber_queue_pop_front(&p->queue);
    pthread_mutex_unlock(&p->lock);
    return next;
}
static ums_ref_t stack_steal(void* self, unsigned thief, unsigned victim) {
    (void)victim;
    return stack_next(self, thief);
}
static bool stack_empty(void* self, unsigned processor) {
    struct stack_policy* p = self;
    (void)processor;
    pthread_mutex_lock(&p->lock);
    const bool is = ums_fiber_queue_size(&p->queue) == 0;
    pthread_mutex_unlock(&p->lock);
    return is;
}
static const ums_policy_calls_t stack_calls = {
    .size = sizeof(ums_policy_calls_t),
    .make = stack_make,
    .destroy = stack_destroy,
    .attach = stack_attach,
    .detach = stack_detach,
    .ready = stack_ready,
    .next = stack_next,
    .steal = stack_steal,
    .empty = stack_empty,
};

static int order[8];
static atomic_int ordered;
static void note(void* argument) { order[ordered++] = *(int*)argument; }

static void note_the_order(void* argument) {
    const struct stack_policy* p = argument;
    int numbers[8];
    ums_fiber_t all[8];
    ordered = 0;
    for (int i = 0; i < 8; ++i) {
        numbers[i] = i;
        all[i] = start(note, &numbers[i]);
    }
    for (int i = 0; i < 8; ++i) join(&all[i]);
    for (int i = 0; i < 8; ++i) CHECK_IS(p->first_in_first_out ? i : 7 - i, order[i]);
}
static void yield_often(void* argument) {
    for (int i = 0; i < 100; ++i) ums_this_fiber_yield();
    add_one(argument);
}
static void share(void* argument) {
    atomic_int* count = argument;
    ums_fiber_t all[32];
    for (int i = 0; i < 32; ++i) all[i] = start(yield_often, count);
    for (int i = 0; i < 32; ++i) join(&all[i]);
}

static void a_policy_of_c_functions_orders_the_fibers(void) {
    for (int fifo = 0; fifo < 2; ++fifo) {
        struct stack_policy policy = {.first_in_first_out = fifo != 0};
        ums_options_t options = UMS_OPTIONS_INIT;
        options.processors = 1;
        options.block = UMS_BLOCK_OFF; /* A hand-off would change the order. */
        options.policy_calls = &stack_calls;
        options.policy_argument = &policy;
        CHECK_IS(0, ums_run(&options, note_the_order, &policy));
        CHECK(policy.handed >= 9);
        CHECK(policy.attached >= 0);
        CHECK_IS(1, policy.destroyed);

        atomic_int count = 0;
        options.processors = 2;
        policy.first_in_first_out = true;
        CHECK_IS(0, ums_run(&options, share, &count));
        CHECK_IS(32, count);
        CHECK_IS(2, policy.destroyed);
    }
}

static void a_cluster_has_its_own(void* argument) {
    struct stack_policy* policy = argument;
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    ums_policy_calls_t calls = stack_calls;
    calls.make = NULL; /* In this case make() gives the argument itself. */
    calls.destroy = NULL;
    calls.steal = NULL;
    stack_make(policy);
    options.policy_calls = &calls;
    options.policy_argument = policy;
    ums_cluster_t* cluster;
    CHECK_IS(0, ums_cluster_create(&cluster, &options));
    CHECK_IS(0, ums_this_fiber_migrate(cluster));
    CHECK_IS(0, ums_this_fiber_migrate(ums_cluster_standard()));
    CHECK_IS(0, ums_cluster_destroy(cluster));
    CHECK(policy->handed > 0);
    stack_destroy(policy);
}
static void a_cluster_takes_a_policy(void) {
    struct stack_policy policy = {.first_in_first_out = true};
    on_fibers(1, a_cluster_has_its_own, &policy);
}

/* What a policy may hear of besides: mutexes that lend priorities, groups, and fibers that go to a
 * processor. */
static struct {
    struct stack_policy queue; /* First: the functions above take it for one of theirs. */
    atomic_int raised, highest, group, weight, placed;
} listening;

static bool listening_has_priorities(void* self) { return self == &listening; }
static void listening_raised(void* self, ums_ref_t fiber) {
    CHECK(self == &listening);
    atomic_store(&listening.highest, ums_ref_effective_priority(fiber));
    add_one(&listening.raised);
}
static bool listening_set_group_weight(void* self, unsigned group, unsigned weight) {
    CHECK(self == &listening);
    atomic_store(&listening.group, (int)group);
    atomic_store(&listening.weight, (int)weight);
    return group < 8;
}
static void listening_placed(void* self, ums_ref_t fiber, unsigned processor) {
    CHECK(self == &listening && fiber.who == ums_this_fiber_ref().who);
    atomic_store(&listening.placed, (int)processor);
}

static void lock_and_unlock(void* argument) {
    ums_mutex_t* mutex = argument;
    CHECK_IS(0, ums_mutex_lock(mutex));
    CHECK_IS(0, ums_mutex_unlock(mutex));
}
static void tell_it_all(void* argument) {
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    ums_cluster_t* cluster;
    ums_fiber_options_t urgent = UMS_FIBER_OPTIONS_INIT;
    ums_fiber_t fiber;
    static ums_mutex_t mutex;
    options.policy_calls = argument;
    options.policy_argument = &listening;
    options.processors = 2;
    CHECK_IS(0, ums_cluster_create(&cluster, &options));
    CHECK_IS(0, ums_cluster_set_group_weight(cluster, 7, 300));
    CHECK_IS(7, listening.group);
    CHECK_IS(300, listening.weight);
    CHECK_IS(-EOPNOTSUPP, ums_cluster_set_group_weight(cluster, 8, 300));

    CHECK_IS(0, ums_this_fiber_migrate_to(cluster, 1));
    CHECK_IS(1, listening.placed);
    CHECK_IS(0, ums_mutex_lock(&mutex));
    urgent.priority = 2;
    CHECK_IS(0, ums_fiber_create(&fiber, &urgent, lock_and_unlock, &mutex));
    while (listening.raised == 0) ums_this_fiber_yield();
    CHECK_IS(2, listening.highest);
    CHECK_IS(2, ums_ref_effective_priority(ums_this_fiber_ref()));
    CHECK_IS(0, ums_mutex_unlock(&mutex));
    CHECK_IS(0, ums_ref_effective_priority(ums_this_fiber_ref()));
    join(&fiber);
    CHECK_IS(1, listening.raised);
    CHECK_IS(0, ums_this_fiber_migrate(ums_cluster_standard()));
    CHECK_IS(0, ums_cluster_destroy(cluster));
}
static void a_policy_of_c_functions_hears_of_priorities_groups_and_places(void) {
    ums_policy_calls_t calls = stack_calls;
    calls.has_priorities = listening_has_priorities;
    calls.raised = listening_raised;
    calls.set_group_weight = listening_set_group_weight;
    calls.placed = listening_placed;
    listening.queue.first_in_first_out = true;
    on_fibers(1, tell_it_all, &calls);
    CHECK_IS(1, listening.queue.destroyed);
}

/* --- The built-in policies --- */

static void no_wishes(void* argument) {
    const ums_ref_t self = ums_this_fiber_ref();
    CHECK_IS(0, ums_ref_priority(self));
    CHECK_IS(100, ums_ref_weight(self));
    CHECK_IS(0, ums_ref_group(self));
    CHECK(ums_ref_deadline(self) == UMS_NEVER);
    add_one(argument);
}
static void wishes(void* argument) {
    const ums_ref_t self = ums_this_fiber_ref();
    CHECK_IS(2, ums_ref_priority(self));
    CHECK_IS(2, ums_ref_effective_priority(self));
    CHECK_IS(300, ums_ref_weight(self));
    CHECK_IS(7, ums_ref_group(self));
    CHECK_IS(1234, ums_ref_deadline(self));
    ums_ref_set_priority(self, -4);
    ums_ref_set_weight(self, 10000);
    ums_ref_set_group(self, 63);
    ums_ref_set_deadline(self, UMS_NEVER);
    ums_this_fiber_yield();
    CHECK_IS(-4, ums_ref_priority(self));
    CHECK_IS(10000, ums_ref_weight(self));
    CHECK_IS(63, ums_ref_group(self));
    CHECK(ums_ref_deadline(self) == UMS_NEVER);
    add_one(argument);
}
static void ask(void* argument) {
    const ums_policy_t* policy = argument;
    ums_cluster_options_t options = UMS_CLUSTER_OPTIONS_INIT;
    options.policy = *policy;
    ums_cluster_t* cluster;
    CHECK_IS(0, ums_cluster_create(&cluster, &options));
    CHECK_IS(*policy == UMS_POLICY_FAIR_SHARE ? 0 : -EOPNOTSUPP,
             ums_cluster_set_group_weight(cluster, 7, 200));
    CHECK_IS(-EINVAL, ums_cluster_set_group_weight(cluster, 64, 200));
    CHECK_IS(-EINVAL, ums_cluster_set_group_weight(cluster, 7, 0));
    atomic_int count = 0;
    ums_fiber_options_t there = UMS_FIBER_OPTIONS_INIT;
    there.cluster = cluster;
    ums_fiber_t fiber;
    CHECK_IS(0, ums_fiber_create(&fiber, &there, no_wishes, &count));
    join(&fiber);
    /* Zero means the default in each field. */
    ums_fiber_options_t zeroed = {.size = sizeof zeroed, .cluster = cluster};
    CHECK_IS(0, ums_fiber_create(&fiber, &zeroed, no_wishes, &count));
    join(&fiber);
    there.priority = 2;
    there.weight = 300;
    there.group = 7;
    there.deadline = 1234;
    CHECK_IS(0, ums_fiber_create(&fiber, &there, wishes, &count));
    join(&fiber);
    CHECK_IS(3, count);
    there.priority = 4;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &there, wishes, &count));
    there.priority = 0;
    there.weight = 10001;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &there, wishes, &count));
    there.weight = 1;
    there.group = 64;
    CHECK_IS(-EINVAL, ums_fiber_create(&fiber, &there, wishes, &count));
    there.group = 0;
    CHECK_IS(0, ums_cluster_destroy(cluster));
}
static void each_policy_is_chosen_by_name(void) {
    static const char* const names[] = {"work_stealing",
                                        "global_fifo",
                                        "local_locked",
                                        "local_mpsc",
                                        "local_mpsc_intrusive",
                                        "priority",
                                        "earliest_deadline_first",
                                        "fair_share"};
    for (int i = 0; i <= UMS_POLICY_FAIR_SHARE; ++i) {
        ums_policy_t policy = ums_policy_named(names[i]);
        CHECK_IS(i, policy);
        on_fibers(2, ask, &policy);
    }
    CHECK_IS(-EINVAL, ums_policy_named("fastest"));
    CHECK_IS(-EINVAL, ums_policy_named(NULL));
}

static void* make_none(void* argument) {
    (void)argument;
    return NULL;
}
static void bad_policies_are_refused(void) {
    struct stack_policy policy = {.attached = 0};
    ums_options_t options = UMS_OPTIONS_INIT;
    ums_policy_calls_t calls = UMS_POLICY_CALLS_INIT;
    options.policy_calls = &calls;
    CHECK_IS(-EINVAL, ums_run(&options, share, &policy));
    calls = stack_calls;
    calls.size = 1;
    CHECK_IS(-EINVAL, ums_run(&options, share, &policy));
    calls = stack_calls;
    calls.make = make_none;
    CHECK_IS(-ENOMEM, ums_run(&options, share, &policy));
}

int main(void) {
    RUN(clusters_come_and_go);
    RUN(bad_clusters_are_refused);
    RUN(fibers_migrate_and_threads_do_not);
    RUN(fibers_and_processors_go_where_they_are_told);
    RUN(functions_are_posted_to_a_cluster);
    RUN(many_fibers_are_unparked_at_once);
    RUN(a_policy_of_c_functions_orders_the_fibers);
    RUN(an_ordered_queue_gives_the_lowest_key_first);
    RUN(a_cluster_takes_a_policy);
    RUN(a_policy_of_c_functions_hears_of_priorities_groups_and_places);
    RUN(each_policy_is_chosen_by_name);
    RUN(bad_policies_are_refused);
    return check_end();
}
