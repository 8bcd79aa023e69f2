// SPDX-License-Identifier: MIT

// A key's handle and each of its values share the key, so that a value that outlives the handle
// still knows it.

#include <memory>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "capi/call.hpp"
#include "ums/impl/local.hpp"

using namespace ums;
using namespace ums::capi;

namespace {

struct shared_key {
    impl::local_key local;
    base::atomic<void (*)(void*)> destructor;  // Null if there is none, or the key is deleted.
};

struct value_node : impl::local_node {
    explicit value_node(std::shared_ptr<shared_key> of)
        : impl::local_node{&destroy}, key{std::move(of)} {}

    static void destroy(impl::local_node& self) noexcept {
        const std::unique_ptr<value_node> gone{static_cast<value_node*>(&self)};
        // relaxed: a function, which needs no publishing.
        void (*const destructor)(void*) = gone->key->destructor.load(base::relaxed);
        if (gone->value != nullptr && destructor != nullptr) destructor(gone->value);
    }

    const std::shared_ptr<shared_key> key;
    void* value = nullptr;
};

}  // namespace

struct ums_key {
    std::shared_ptr<shared_key> shared = std::make_shared<shared_key>();
};

namespace {

value_node* find(ums_key_t key) noexcept {
    auto* const node = static_cast<value_node*>(impl::find_local(key->shared->local));
    UMS_DEBUG_ASSERT(node == nullptr || node->key == key->shared,
                     "a key was given the value of another");
    return node;
}

}  // namespace

int ums_key_create(ums_key_t* made, void (*destructor)(void*)) {
    *made = nullptr;
    return call([&] {
        auto key = std::make_unique<ums_key>();
        key->shared->local = impl::make_local_key();
        key->shared->destructor.store(destructor, base::relaxed);  // relaxed: not shared yet.
        *made = key.release();
    });
}

void ums_key_delete(ums_key_t key) {
    key->shared->destructor.store(nullptr, base::relaxed);  // relaxed: as above.
    impl::destroy_local(key->shared->local);
    impl::free_local_key(key->shared->local);
    delete key;
}

int ums_key_set(ums_key_t key, const void* value) {
    return call([&] {
        value_node* node = find(key);
        if (node == nullptr) {
            if (value == nullptr) return;
            auto made = std::make_unique<value_node>(key->shared);
            impl::add_local(key->shared->local, *made);
            node = made.release();
        }
        node->value = const_cast<void*>(value);
    });
}

void* ums_key_get(ums_key_t key) {
    const value_node* node = find(key);
    return node != nullptr ? node->value : nullptr;
}
