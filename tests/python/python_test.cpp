// SPDX-License-Identifier: MIT
// variants: p1 fifo monitor
//
// CPython in the process, called from a hundred fibers, with callbacks that release its lock and
// wait. The interpreter keeps a state for each kernel thread: threading.get_ident() and
// threading.local() show which one it takes a fiber for.
#include <Python.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;
using python_test = conserving_test;

constexpr int fibers = 100, rounds = 8, kinds = 8, depth = 2;

const char* const script = R"(
import threading, host

local = threading.local()

def work(who, depth):
    me, thread = threading.get_ident(), threading.get_native_id()
    before = getattr(local, 'depth', None)
    if before is None:
        local.who = who
    elif local.who != who or before != depth + 1:
        raise RuntimeError(f'{who} at {depth} runs as {local.who} at {before}')
    total = 0
    for i in range(host.rounds):
        local.depth = depth
        total += host.wait(i % host.kinds, who)
        if depth > 0 and i % 4 == 0:
            total += host.again(work, who, depth - 1)
        if (threading.get_ident(), threading.get_native_id()) != (me, thread):
            raise RuntimeError(f'{who} changed its thread')
        if local.who != who:
            raise RuntimeError(f'{who} runs as {local.who}')
        local.depth = depth
    local.depth = depth + 1 if before is not None else None
    return total
)";

long expected(long who, int at) {
    return rounds * who + (at > 0 ? rounds / 4 * expected(who, at - 1) : 0);
}

struct question {
    int value;
    ums::channel<int>* answers;
};

// What the callbacks wait for. Alive while the runtime runs.
struct surroundings {
    ums::mutex lock;
    int inside = 0;  // Of lock.
    ums::channel<question> questions;
    ums::counting_semaphore<> few{4};
    std::atomic<int> waits = 0;
    std::atomic<int> waiting = 0, most_waiting = 0;
};
surroundings* around = nullptr;

int ask(int value) {
    ums::channel<int> answers;
    EXPECT_EQ(around->questions.send(question{value, &answers}), ums::channel_status::ok);
    return answers.receive().value();
}

int wait_for(int kind, int who) {
    ++around->waits;
    switch (kind) {
        case 0:
            ums::this_fiber::sleep_for(100us);
            return who;
        case 1:
            ums::this_fiber::yield();
            return who;
        case 2: {
            const std::lock_guard guard{around->lock};
            EXPECT_EQ(around->inside++, 0);
            ums::this_fiber::sleep_for(10us);
            --around->inside;
            return who;
        }
        case 3:
            return ask(who);
        case 4:
            around->few.acquire();
            ums::this_fiber::sleep_for(20us);
            around->few.release();
            return who;
        case 5:
            return ums::spawn([who] { return who; }).join();
        case 6:
            return ums::offload([who] { return who; });
        default:
            return ums::blocking([who] { return usleep(50), who; });
    }
}

// --- the module `host` ---

PyObject* host_wait(PyObject*, PyObject* arguments) {
    int kind = 0, who = 0;
    if (PyArg_ParseTuple(arguments, "ii", &kind, &who) == 0) return nullptr;
    long got = 0;
    const pid_t thread = gettid();
    PyThreadState* const state = PyEval_SaveThread();  // Py_BEGIN_ALLOW_THREADS
    const int now = ++around->waiting;
    for (int most = around->most_waiting; now > most;)
        if (around->most_waiting.compare_exchange_weak(most, now)) break;
    got = wait_for(kind, who);
    --around->waiting;
    EXPECT_EQ(gettid(), thread);
    PyEval_RestoreThread(state);
    return PyLong_FromLong(got);
}

// Into Python again, after a wait and in a state that the interpreter has for this thread.
PyObject* host_again(PyObject*, PyObject* arguments) {
    PyObject* function = nullptr;
    int who = 0, at = 0;
    if (PyArg_ParseTuple(arguments, "Oii", &function, &who, &at) == 0) return nullptr;
    PyThreadState* const state = PyEval_SaveThread();
    ums::this_fiber::yield();
    const PyGILState_STATE nested = PyGILState_Ensure();
    PyObject* const result = PyObject_CallFunction(function, "ii", who, at);
    PyGILState_Release(nested);
    ums::this_fiber::yield();
    PyEval_RestoreThread(state);
    return result;
}

PyMethodDef functions[] = {{"wait", host_wait, METH_VARARGS, nullptr},
                           {"again", host_again, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef host = {
    PyModuleDef_HEAD_INIT, "host", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

PyObject* make_host() {
    PyObject* const made = PyModule_Create(&host);
    PyModule_AddIntConstant(made, "rounds", rounds);
    PyModule_AddIntConstant(made, "kinds", kinds);
    return made;
}

// The program's one interpreter; its lock is free between the calls.
class interpreter {
public:
    interpreter() {
        PyImport_AppendInittab("host", &make_host);
        Py_InitializeEx(0);
        if (PyRun_SimpleString(script) != 0) ADD_FAILURE() << "the script is wrong";
        PyObject* const main = PyImport_AddModule("__main__");
        work_ = PyObject_GetAttrString(main, "work");
        state_ = PyEval_SaveThread();
    }
    ~interpreter() {
        PyEval_RestoreThread(state_);
        Py_DECREF(work_);
        EXPECT_EQ(Py_FinalizeEx(), 0);
    }
    interpreter(const interpreter&) = delete;
    interpreter& operator=(const interpreter&) = delete;

    // From a fiber inside ums::keep_carrier.
    long work(int who) const {
        const PyGILState_STATE state = PyGILState_Ensure();
        PyObject* const result = PyObject_CallFunction(work_, "ii", who, depth);
        long answer = -1;
        if (result != nullptr) {
            answer = PyLong_AsLong(result);
            Py_DECREF(result);
        } else {
            ADD_FAILURE() << "fiber " << who << ": Python raised an exception";
            PyErr_Print();
        }
        PyGILState_Release(state);
        return answer;
    }

private:
    PyObject* work_ = nullptr;
    PyThreadState* state_ = nullptr;
};

TEST_F(python_test, a_hundred_fibers_call_python_and_wait_in_its_callbacks) {
    const interpreter python;
    ums::run([&] {
        surroundings here;
        around = &here;
        ums::fiber answers{[&] {
            while (const auto q = here.questions.receive())
                EXPECT_EQ(q->answers->send(q->value), ums::channel_status::ok);
        }};
        std::vector<ums::fiber> callers;
        std::vector<long> results(fibers);
        for (int i = 0; i < fibers; ++i)
            callers.emplace_back([&, i] {
                for (int part = 0; part < 2; ++part) {
                    const ums::keep_carrier kept;
                    results[static_cast<std::size_t>(i)] += python.work(i);
                }
            });
        for (auto& f : callers) f.join();
        here.questions.close();
        answers.join();
        for (int i = 0; i < fibers; ++i)
            EXPECT_EQ(results[static_cast<std::size_t>(i)], 2 * expected(i, depth)) << i;
        EXPECT_EQ(here.waits, 2L * fibers * expected(1, depth));
        EXPECT_GT(here.most_waiting, fibers / 4) << "the waits of many lay side by side";
        around = nullptr;
    });
}

}  // namespace
