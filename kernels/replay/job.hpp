// What a rank has while it replays: open files, types, buffers, and what it counts.
// What does not live here: the calls (calls.hpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/replay/script.hpp"
#include "kernels/replay/types.hpp"

namespace ioweir::replay {

/// Ends all ranks with a message.
[[noreturn]] void fail(const std::string& what);

/// Which bytes of memory a call touches, from its buffer on.
struct Span {
    std::int64_t lower = 0;
    std::int64_t bytes = 0;
};

class Job {
public:
    Script script;
    std::string target;
    double think = 1;
    MPI_Info hints = MPI_INFO_NULL;

    std::vector<MPI_File> handles;
    std::vector<int> descriptors;
    std::vector<std::FILE*> streams;
    std::vector<MPI_Request> requests;
    std::vector<MPI_Request> signals;  ///< sent to other ranks
    std::vector<MPI_Comm> communicators;
    std::vector<MadeType> types;

    std::int64_t read_bytes = 0;
    std::int64_t written_bytes = 0;
    std::int64_t failed = 0;
    std::string first_failure;

    [[nodiscard]] std::string path(std::int64_t file) const;
    /// Where a call finds its data: another place each time, so that equal blocks do not follow each other.
    void* memory(std::int64_t type, std::int64_t count, bool writes);
    void* bytes(std::int64_t count, bool writes);
    [[nodiscard]] Span span(std::int64_t type, std::int64_t count) const;
    void allocate(std::int64_t bytes);
    /// A call that succeeded when it was recorded.
    void note_failure(const char* call, const std::string& why);
    void check(int code, const char* call);

    template <typename Values>
    static auto& at(Values& values, std::int64_t number, const char* what) {
        if (number < 0 || number >= std::ssize(values))
            fail(std::string("there is no ") + what + " " + std::to_string(number) + " in the script");
        return values[static_cast<std::size_t>(number)];
    }

private:
    char* place(std::int64_t bytes, bool writes);
    static constexpr std::int64_t slack = 1 << 20;
    std::vector<char> written_from_;
    std::vector<char> read_into_;
    std::int64_t turn_ = 0;
};

}  // namespace ioweir::replay
