// SPDX-License-Identifier: MIT

// What docs/thread-state.md recommends for other libraries, compiled: against their headers where
// those are installed, otherwise against declarations of the few functions that are used.

#include <stdexcept>

#include <ums/ums.hpp>

#if __has_include(<openssl/ssl.h>) && __has_include(<openssl/err.h>)
#include <openssl/err.h>
#include <openssl/ssl.h>
#else
struct SSL;
extern "C" void ERR_clear_error();
extern "C" unsigned long ERR_get_error();
extern "C" char* ERR_error_string(unsigned long, char*);
extern "C" int SSL_read(SSL*, void*, int);
extern "C" int SSL_get_error(const SSL*, int);
extern "C" int SSL_get_fd(const SSL*);
#define SSL_ERROR_WANT_READ 2
#define SSL_ERROR_WANT_WRITE 3
#endif

// Python's header must come first in a file, and only the interpreter knows its folder.
enum PyGILState_STATE { PyGILState_LOCKED, PyGILState_UNLOCKED };
extern "C" PyGILState_STATE PyGILState_Ensure();
extern "C" void PyGILState_Release(PyGILState_STATE);
struct PyThreadState;
extern "C" PyThreadState* PyEval_SaveThread();
extern "C" void PyEval_RestoreThread(PyThreadState*);

int read_tls(SSL* ssl, void* buffer, int size);
long in_python(long (*call_python)());
long in_python_that_waits(long (*call_python)());
int callback(ums::channel<int>& inbox);

// As the page prints them:
// clang-format off
int read_tls(SSL* ssl, void* buffer, int size) {
for (;;) {
    ERR_clear_error();  // Another fiber may have left something on this thread.
    const int n = SSL_read(ssl, buffer, size);
    if (n > 0) return n;
    const int why = SSL_get_error(ssl, n);  // No wait between these three.
    if (why == SSL_ERROR_WANT_READ)
        ums::io::wait_readable(SSL_get_fd(ssl)).value();
    else if (why == SSL_ERROR_WANT_WRITE)
        ums::io::wait_writable(SSL_get_fd(ssl)).value();
    else
        throw std::runtime_error{ERR_error_string(ERR_get_error(), nullptr)};
}
}

long in_python(long (*call_python)()) {
const long answer = ums::offload([&] {
    const PyGILState_STATE state = PyGILState_Ensure();
    const long n = call_python();
    PyGILState_Release(state);
    return n;
});
return answer;
}

long in_python_that_waits(long (*call_python)()) {
const ums::keep_carrier kept;
const PyGILState_STATE state = PyGILState_Ensure();
const long n = call_python();  // Its callbacks may wait.
PyGILState_Release(state);
return n;
}

int callback(ums::channel<int>& inbox) {
PyThreadState* const state = PyEval_SaveThread();  // Py_BEGIN_ALLOW_THREADS
const int value = inbox.receive().value_or(0);
PyEval_RestoreThread(state);  // Py_END_ALLOW_THREADS
return value;
}
