// A replay script: what one rank does, as text that `ioweir replay` has made of a trace. docs/reference/replay-script.md describes it.
// What does not live here: the calls themselves (calls.hpp), and who makes the text (python/ioweir/replay).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ioweir::replay {

/// An MPI datatype, as TypeRecord of spec/records.toml has it.
struct TypeRow {
    std::string constructor;
    std::string name;  ///< of a named one
    std::int64_t size = 0;
    std::vector<std::int64_t> types;
    std::vector<std::int64_t> values;
};

/// A communicator that opens files.
struct Group {
    int number = 0;            ///< among those of all ranks
    std::vector<int> members;  ///< ranks of MPI_COMM_WORLD
};

/// One call: its number in the table of calls, and its arguments.
struct Step {
    static constexpr int most_arguments = 5;
    int call = 0;
    std::int64_t arguments[most_arguments] = {};
};

/// Where a call is in the table, and how many arguments it takes; -1 as `arguments`: a list of any length, which stands in `Script::lists`.
struct Known {
    int call = -1;
    int arguments = 0;
};

struct Script {
    int rank = 0;
    int ranks = 0;
    std::uint64_t seed = 0;
    int handles = 0;      ///< numbers of MPI files are below it
    int descriptors = 0;  ///< of POSIX files
    int streams = 0;
    int requests = 0;
    std::vector<std::string> files;  ///< below the target directory
    std::vector<TypeRow> types;
    std::vector<Group> groups;
    std::vector<Step> steps;
    std::vector<std::int64_t> lists;  ///< a list's length, then its members; a step's argument is where that stands
};

/// Throws std::runtime_error with the line's number where the text is no script. `find` knows the calls.
[[nodiscard]] Script parse(const std::string& text, Known (*find)(const std::string& name));

}  // namespace ioweir::replay
