#include "tracer/ring/python_line.hpp"

#include <atomic>
#include <cstring>

namespace ioweir::tracer {
namespace {

constexpr int most_frames = 64;

/// Of CPython 3.10 and later; objects are opaque.
struct Interpreter {
    int (*is_initialized)();
    void* (*this_thread)();
    int (*has_lock)();
    int (*take_lock)();
    void (*give_lock)(int);
    void* (*interpreter_of)(void*);
    void* (*first_thread)(void*);
    void* (*next_thread)(void*);
    int (*collector_off)();
    int (*collector_on)();
    void (*fetch_error)(void**, void**, void**);
    void (*restore_error)(void*, void*, void*);
    void* (*frame_of)(void*);
    void* (*outer)(void*);
    void* (*code_of)(void*);
    int (*line_of)(void*);
    void* (*attribute)(void*, const char*);
    const char* (*text_of)(void*);
    void (*drop)(void*);
};

constinit Interpreter python{};
constinit std::atomic<bool> python_known{false};
constinit std::atomic_flag looking = ATOMIC_FLAG_INIT;

template <typename Pointer>
bool look_up(FindFunction find, const char* name, Pointer& out) {
    void* found = find(name);
    static_assert(sizeof found == sizeof out);
    std::memcpy(&out, &found, sizeof out);
    return found != nullptr;
}

bool is_own(const char* file) {
    return file != nullptr && file[0] != '<' && file[0] != '\0' && std::strstr(file, "/site-packages/") == nullptr &&
           std::strstr(file, "/dist-packages/") == nullptr && std::strstr(file, "/lib/python3") == nullptr;
}

/// The file of a frame's code into `out`; false where it is none of the program's.
bool own_file(void* frame, PythonLine& out) {
    bool own = false;
    void* code = python.code_of(frame);
    if (code == nullptr) return false;
    if (void* name = python.attribute(code, "co_filename")) {
        const char* text = python.text_of(name);
        if (is_own(text) && std::strlen(text) < sizeof out.file) {
            std::strcpy(out.file, text);  // NOLINT: it fits
            own = true;
        }
        python.drop(name);
    }
    python.drop(code);
    return own;
}

void walk(void* thread, PythonLine& out) {
    void *type = nullptr, *value = nullptr, *trace = nullptr;
    python.fetch_error(&type, &value, &trace);
    void* frame = python.frame_of(thread);
    for (int depth = 0; frame != nullptr; ++depth) {
        if (depth < most_frames && own_file(frame, out)) {
            const int line = python.line_of(frame);
            out.line = line > 0 ? static_cast<std::uint32_t>(line) : 0;
        }
        void* outer = out.line == 0 && depth < most_frames ? python.outer(frame) : nullptr;
        python.drop(frame);
        frame = outer;
    }
    python.restore_error(type, value, trace);
}

/// Whether no other Python thread exists that could hold the lock, or wait for what this one does.
bool is_only_thread(void* thread) {
    void* first = python.first_thread(python.interpreter_of(thread));
    return first == thread && python.next_thread(first) == nullptr;
}

}  // namespace

void look_for_python(FindFunction find) {
    if (find == nullptr || python_known.load(std::memory_order_acquire) ||
        looking.test_and_set(std::memory_order_acquire))
        return;
    Interpreter& p = python;
    const bool all =
        look_up(find, "PyGILState_GetThisThreadState", p.this_thread) &&
        look_up(find, "Py_IsInitialized", p.is_initialized) && look_up(find, "PyGILState_Check", p.has_lock) &&
        look_up(find, "PyGILState_Ensure", p.take_lock) && look_up(find, "PyGILState_Release", p.give_lock) &&
        look_up(find, "PyThreadState_GetInterpreter", p.interpreter_of) &&
        look_up(find, "PyInterpreterState_ThreadHead", p.first_thread) &&
        look_up(find, "PyThreadState_Next", p.next_thread) && look_up(find, "PyGC_Disable", p.collector_off) &&
        look_up(find, "PyGC_Enable", p.collector_on) && look_up(find, "PyErr_Fetch", p.fetch_error) &&
        look_up(find, "PyErr_Restore", p.restore_error) && look_up(find, "PyThreadState_GetFrame", p.frame_of) &&
        look_up(find, "PyFrame_GetBack", p.outer) && look_up(find, "PyFrame_GetCode", p.code_of) &&
        look_up(find, "PyFrame_GetLineNumber", p.line_of) && look_up(find, "PyObject_GetAttrString", p.attribute) &&
        look_up(find, "PyUnicode_AsUTF8", p.text_of) && look_up(find, "Py_DecRef", p.drop);
    if (all) python_known.store(true, std::memory_order_release);
    looking.clear(std::memory_order_release);
}

bool python_is_there() { return python_known.load(std::memory_order_acquire); }

void find_python_line(PythonLine& out) {
    out.line = 0;
    if (!python_is_there() || python.is_initialized() == 0) return;
    void* thread = python.this_thread();
    if (thread == nullptr) return;  // no thread of Python's
    const bool held = python.has_lock() != 0;
    if (!held && !is_only_thread(thread)) return;
    const int lock = held ? 0 : python.take_lock();
    const int collected = python.collector_off();
    walk(thread, out);
    if (collected != 0) python.collector_on();
    if (!held) python.give_lock(lock);
}

}  // namespace ioweir::tracer
