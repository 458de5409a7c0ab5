// MPI hints: what they say where the plan leaves a choice open, what the MPI library is told, and what MPI_File_get_info answers.
// Reference: docs/reference/hints.md; the table comes from spec/hints.toml.
// What does not live here: whether the strategy that results is executed (open.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "engine/state.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::engine {

struct Chosen {
    planner::Strategy strategy;
    HintEffects effects;
    std::vector<std::string> unused;  ///< hints that could not be read, and why
};

/// The rule's strategy with what the hints say about keys that the rule does not have. `value_of` gives a hint's value, or nothing.
[[nodiscard]] Chosen choose(const policy::FileRule& rule,
                            FunctionRef<std::optional<std::string>(const char* hint)> value_of);

/// The value of a key, or nothing; of MPI_INFO_NULL as well.
[[nodiscard]] std::optional<std::string> info_value(MPI_Info info, const char* key);

/// What the MPI library is given in the place of the program's info, which is not changed. ROMIO's data sieving writes back bytes
/// around those a rank asked for, under a lock that the engine does not take: a call that passes through could undo what another
/// rank writes at the same time. Other libraries ignore that hint.
class LibraryInfo {
public:
    enum class Sieving { off, as_by_default, as_given };
    LibraryInfo(MPI_Info given, const planner::Stripe& stripe, Sieving sieving = Sieving::off);
    ~LibraryInfo();
    LibraryInfo(const LibraryInfo&) = delete;
    LibraryInfo& operator=(const LibraryInfo&) = delete;
    [[nodiscard]] MPI_Info get() const { return info_; }

private:
    MPI_Info info_;
    MPI_Info own_{};
    bool owned_ = false;
};

/// Puts the values in effect into what the library has answered.
void show_hints(const Handle& handle, MPI_Info info);

}  // namespace ioweir::engine
