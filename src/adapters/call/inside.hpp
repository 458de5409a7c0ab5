// While an adapter carries out a call of the program, what it calls of the library itself goes on as it is.
#pragma once

namespace ioweir::adapters {

/// A thread's flag is set for so long.
class Inside {
public:
    explicit Inside(bool& flag) : flag_(flag) { flag_ = true; }
    ~Inside() { flag_ = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    bool& flag_;
};

}  // namespace ioweir::adapters
