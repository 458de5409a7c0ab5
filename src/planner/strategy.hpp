// Strategy: one point in the space of four independent choices (docs/explanation/strategies.md), and its text form as
// plan files, hints and reports use it.
// What does not live here: plan files (plan_file.hpp), what a strategy does (strategies/), which are executable (plan.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ioweir::planner {

/// Which files the bytes of one logical file go to.
enum class MappingKind : std::uint8_t {
    shared,    ///< one file, as the program named it
    grouped,   ///< `count` groups of ranks, a file each (syncIO; with as many groups as ranks: one file per process)
    subfiles,  ///< stripes dealt over `count` files; 0 = auto, from the target profile (Son et al.)
    log,       ///< a log per writer and an index (PLFS)
};

struct Mapping {
    MappingKind kind = MappingKind::shared;
    std::int64_t count = 0;
    friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// subfiles:auto: who leaves that to ioweir leaves the writers to it, too, unless they are named.
[[nodiscard]] constexpr bool asks_for_targets(const Mapping& mapping) {
    return mapping.kind == MappingKind::subfiles && mapping.count == 0;
}

/// Who touches storage.
enum class WritersKind : std::uint8_t {
    everyone,     ///< every rank writes its own bytes
    aggregators,  ///< `count` ranks, in step with the others; 0 = auto
    delegates,    ///< one dedicated rank in `count`, which writes while the others compute on (rbIO)
    behind,       ///< threads of `count` ranks a node, under unmodified programs
    library,      ///< the MPI library, as without a plan: no strategy of ours
    automatic,    ///< everyone or aggregators, call by call, as chosen_for() in plan.hpp says
};

struct Writers {
    WritersKind kind = WritersKind::everyone;
    std::int64_t count = 0;
    friend bool operator==(const Writers&, const Writers&) = default;
};

/// How the bytes are divided among the writers.
enum class Domains : std::uint8_t {
    even,     ///< equal parts of the touched region (ROMIO's even file domains)
    aligned,  ///< the same, moved to stripe boundaries (Liao; Cray CB 1)
    cyclic,   ///< stripes dealt round from file offset 0, so that a stripe keeps its writer (Cray CB 2, static-cyclic)
    group_cyclic,  ///< the same with several writers a target (Liao)
    cooperative,   ///< boundaries moved by whole stripes until the contention-free order needs no extra round
    dimension,     ///< along an array dimension (Son et al.)
    group,         ///< by group of ranks (Liu et al.)
};

/// In which order each writer works through its own part, buffer by buffer.
enum class Order : std::uint8_t {
    sequential,       ///< from its first byte to its last
    contention_free,  ///< so that no contention domain serves more writers at a time than saturate it (Wang et al., IBCS)
    arrival,          ///< as the bytes come
};

/// Wanted striping of a file at its creation, where the storage can; 0 leaves a value to the file system.
struct Stripe {
    std::int64_t size_bytes = 0;
    std::int64_t count = 0;
    std::int64_t start = -1;  ///< target of the first stripe; -1 leaves it to the file system
    friend bool operator==(const Stripe&, const Stripe&) = default;
};

/// What the contention-free order makes as small as it can be.
enum class RoundGoal : std::uint8_t {
    fewest,  ///< the number of rounds, with the paper's items (Wang et al. 2014, section III-B)
    shortest,  ///< the sum over rounds of the largest part that anyone moves: its time, where all targets are equally fast
};

struct Strategy {
    Mapping mapping;
    Writers writers;
    Domains domains = Domains::even;
    Order order = Order::sequential;
    std::int64_t buffer_bytes = 0;  ///< most bytes a writer holds in one round; 0 = the strategy's own default
    /// Contention-free order: a remainder of up to this share of a buffer joins the item before it (Wang et al. 2014, section
    /// III-B); 0 to 1; nothing = the strategy's own default.
    std::optional<double> threshold = std::nullopt;
    RoundGoal goal = RoundGoal::fewest;  ///< with contention-free order
    Stripe stripe;
    friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// May the bytes of each rank be moved by themselves, so that bytes that several ranks write are moved for each of them?
[[nodiscard]] constexpr bool each_rank_by_itself(const Strategy& strategy) {
    return strategy.writers.kind != WritersKind::aggregators && strategy.writers.kind != WritersKind::delegates;
}

/// May bytes go through aggregators?
[[nodiscard]] constexpr bool may_aggregate(const Strategy& strategy) {
    return strategy.writers.kind == WritersKind::aggregators || strategy.writers.kind == WritersKind::automatic;
}

/// The MPI library moves the bytes: there is nothing to plan.
[[nodiscard]] constexpr bool left_to_library(const Strategy& strategy) {
    return strategy.writers.kind == WritersKind::library;
}

/// Each reads exactly what the to_text of its type gives: "subfiles:auto", "aggregators:8", "delegates:1/16", "group-cyclic".
[[nodiscard]] Result<Mapping> parse_mapping(std::string_view text);
[[nodiscard]] Result<Writers> parse_writers(std::string_view text);
[[nodiscard]] Result<Domains> parse_domains(std::string_view text);
[[nodiscard]] Result<Order> parse_order(std::string_view text);

[[nodiscard]] std::string to_text(const Mapping& mapping);
[[nodiscard]] std::string to_text(const Writers& writers);
[[nodiscard]] std::string to_text(Domains domains);
[[nodiscard]] std::string to_text(Order order);

/// A share such as 0.25, as to_text and plan files write it.
[[nodiscard]] std::string share_text(double share);

/// One line: "mapping shared, writers aggregators:4, domains even, order sequential, buffer 16 MiB".
[[nodiscard]] std::string to_text(const Strategy& strategy);

/// All legal values as they are written, for help and references: "shared", "grouped:N", "subfiles:N or subfiles:auto", "log".
struct ChoiceForms {
    std::vector<std::string> mapping;
    std::vector<std::string> writers;
    std::vector<std::string> domains;
    std::vector<std::string> order;
};
[[nodiscard]] ChoiceForms choice_forms();

}  // namespace ioweir::planner
