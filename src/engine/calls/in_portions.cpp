// A collective call of which portions are moved by each alternative in turn, and the rest by the best: one after the other, on all ranks alike.
// What does not live here: whose portion is next (choice/portions.hpp).
#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using Clock = std::chrono::steady_clock;
/// What a rank says of a portion that failed, and that is not to be compared.
constexpr std::int64_t failed_ns = std::int64_t{1} << 60;

/// Whether the file holds all bytes that a reading call asks for. Else a part that ends behind the file's end would be short, and not the last.
bool is_all_there(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes) {
    MPI_Offset etypes = call.offset;
    if (handle.view_bytes == 0) return false;
    if (!call.explicit_offset && position_of(handle, call.fh, etypes) != MPI_SUCCESS) return false;
    std::int64_t first = 0;
    if (etypes < 0 || __builtin_mul_overflow(etypes, handle.view.etype_bytes, &first) ||
        first > handle.view_bytes - bytes || !handle.view.has_places(first, bytes))
        return false;
    layout::Extent last;
    layout::PieceCursor cursor = handle.view.pieces(first + bytes - 1, 1);
    return cursor.next(last) && last.end() <= length_now(engine, handle);
}

/// The program's call, part by part.
class PartedCall {
public:
    PartedCall(Engine& engine, Handle& handle, const Call& call) : engine_(engine), handle_(handle), call_(call) {
        bytes_ = bytes_asked(call);
        const bool reads = call.direction == Direction::read;
        may_leave_gaps_ = !reads && !handle.view.filetype->contiguous;
        if (!(reads ? handle.readable : handle.writable)) return;
        if (!call.explicit_offset && (handle.view_bytes == 0 || position_of(handle, call.fh, begin_) != MPI_SUCCESS))
            return;
        is_short_ = reads && bytes_ > 0 && !is_all_there(engine, handle, call, bytes_);
        if (is_short_) return;
        MPI_Count size = 0, lower = 0;
        if (bytes_ <= 0 || PMPI_Type_size_x(call.datatype, &size) != MPI_SUCCESS ||
            PMPI_Type_get_extent_x(call.datatype, &lower, &extent_) != MPI_SUCCESS)
            return;
        etype_bytes_ = handle.view.etype_bytes;
        size_ = size;
        // Parts begin where an element of the view's type does.
        step_ = etype_bytes_ / std::gcd(etype_bytes_, static_cast<std::int64_t>(size));
    }

    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    /// Into how many units it can be divided at most. 0: it will read less than it asks for, and what that takes says nothing.
    [[nodiscard]] std::int64_t most_units() const {
        if (is_short_) return 0;
        if (bytes_ <= 0) return PortionTrial::most_units;
        if (step_ == 0) return 1;
        return std::clamp<std::int64_t>(call_.count / step_, 1, PortionTrial::most_units);
    }
    [[nodiscard]] bool may_leave_gaps() const { return may_leave_gaps_; }
    /// From now on it has so many units, the same number on all ranks.
    void divide(std::int64_t units) { units_ = units; }
    [[nodiscard]] std::int64_t units_left() const { return units_ - done_; }

    /// The next so many units, made by make(). The last part has what is left, and what the program asks for where that is faulty. After a part that
    /// failed this rank moves nothing more, as in a call that is whole.
    template <typename Make>
    void move(std::int64_t units, Make make) {
        const bool is_last = units == units_left();
        const MPI_Count end = is_last ? call_.count : elements_before(done_ + units);
        Call part = call_;
        part.count = result_ == MPI_SUCCESS ? end - elements_ : 0;
        part.buffer = static_cast<char*>(call_.buffer) + elements_ * extent_;
        const std::int64_t etypes = elements_ * size_ / etype_bytes_;
        const bool is_whole = is_last && done_ == 0;
        if (!is_whole) part.raises = false;
        if (elements_ > 0 && call_.explicit_offset) part.offset += etypes;
        // Libraries leave the pointer elsewhere where a part was short.
        if (elements_ > 0 && !call_.explicit_offset) set_position(handle_, call_.fh, begin_ + etypes);
        MPI_Status status{};
        if (!is_whole && call_.status != MPI_STATUS_IGNORE) part.status = &status;
        const int result = make(part);
        if (result_ == MPI_SUCCESS) result_ = result;
        if (!is_whole && call_.status != MPI_STATUS_IGNORE) {
            MPI_Count moved = 0;
            if (PMPI_Get_elements_x(&status, MPI_BYTE, &moved) == MPI_SUCCESS && moved != MPI_UNDEFINED)
                moved_ += moved;
            if (is_last) engine_.status_bytes.set(*call_.status, moved_);
        }
        elements_ = end;
        done_ += units;
    }
    [[nodiscard]] int result() const { return result_; }

private:
    [[nodiscard]] MPI_Count elements_before(std::int64_t unit) const {
        if (step_ == 0) return 0;
        const auto steps = static_cast<__int128>(call_.count / step_) * unit / units_;
        return static_cast<MPI_Count>(steps) * step_;
    }

    Engine& engine_;
    Handle& handle_;
    const Call& call_;
    MPI_Offset begin_ = 0;  ///< where the pointer stood
    bool is_short_ = false;
    bool may_leave_gaps_ = false;  ///< in what it writes
    std::int64_t bytes_ = 0, etype_bytes_ = 1, step_ = 0;
    MPI_Count size_ = 0, extent_ = 0;
    std::int64_t units_ = 1, done_ = 0;
    MPI_Count elements_ = 0;  ///< in the parts that are done
    std::int64_t moved_ = 0;
    int result_ = MPI_SUCCESS;
};

/// As long as it lives, errors of the library's calls do not go to the file's error handler. The reference that it took to that stays: of the
/// predefined ones none may be freed, and which are predefined differs between libraries.
class QuietErrors {
public:
    explicit QuietErrors(MPI_File fh) : fh_(fh) {
        is_quiet_ = PMPI_File_get_errhandler(fh, &before_) == MPI_SUCCESS;
        if (is_quiet_) PMPI_File_set_errhandler(fh, MPI_ERRORS_RETURN);
    }
    ~QuietErrors() {
        if (is_quiet_) PMPI_File_set_errhandler(fh_, before_);
    }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

private:
    MPI_File fh_;
    MPI_Errhandler before_{};
    bool is_quiet_ = false;
};

/// As long as it lives, ranks do not exchange through the handle's team.
class WithoutTeam {
public:
    explicit WithoutTeam(Handle& handle) : handle_(handle), team_(std::exchange(handle.team, nullptr)) {}
    ~WithoutTeam() { handle_.team = std::move(team_); }
    WithoutTeam(const WithoutTeam&) = delete;
    WithoutTeam& operator=(const WithoutTeam&) = delete;

private:
    Handle& handle_;
    std::shared_ptr<Team> team_;
};

/// On all ranks alike: the handle's collective calls are made so from now on.
void use(Handle& handle, const Alternative& alternative) {
    if (handle.strategy.writers == alternative.writers) return;
    put_writers(alternative, handle.strategy);
    for (Subgroup& subgroup : handle.subgroup) {
        if (subgroup.part) subgroup.part->exchange->release();
        subgroup = {};
    }
}

int move_by(Engine& engine, Handle& handle, std::size_t alternative, const Call& call,
            FunctionRef<int(const Call&)> same, FunctionRef<int(const Call&)> independent) {
    const auto all = [&] { return same(call); };
    const auto one = [&] { return independent(call); };
    if (alternative == Series::library) return by_library(engine, handle, call, all);
    const Alternative& how = handle.choosing->series->alternatives[alternative];
    use(handle, how);
    // Nobody has to meet where each rank moves its own bytes.
    std::optional<WithoutTeam> without;
    if (how.writers.kind == planner::WritersKind::everyone) without.emplace(handle);
    return transfer(engine, handle, call, all, one);
}

/// Collective: into how many units the call is divided. Where views have gaps, and one rank has fewer bytes than another, parts would leave gaps
/// between the ranks that the whole call does not have. MPICH and Open MPI write bytes of their own memory into gaps behind the end of a file.
PortionTrial::Divided divide(const Handle& handle, const PartedCall& call, bool reads) {
    const exchange::Group::Range all = range_of_all(handle, {call.most_units(), call.bytes()});
    const exchange::Group::Range views = range_of_all(handle, {call.bytes(), call.may_leave_gaps() ? 1 : 0});
    const bool leaves_gaps = views.most != 0 && views.least != all.most;
    if (all.least <= 0) return {0, 1, reads};
    return {all.most, leaves_gaps ? 1 : std::min(all.least, PortionTrial::units_for(all.most)), reads};
}

}  // namespace

bool is_librarys_alone(const Handle& handle, const Call& call) {
    if (!handle.engaged || handle.library_atomic || !handle.view_refusal.empty()) return false;
    // Libraries read and write back what lies in gaps, under locks that the engine does not take.
    if (call.direction == Direction::write && !handle.view.filetype->contiguous) return false;
    return handle.choosing->series->series.mover() == Series::library;
}

int transfer_in_portions(Engine& engine, Handle& handle, const Call& call, FunctionRef<int(const Call&)> same,
                         FunctionRef<int(const Call&)> independent) {
    // All ranks alike.
    if (!handle.engaged || handle.library_atomic || !handle.view_refusal.empty())
        return transfer(engine, handle, call, [&] { return same(call); }, [&] { return independent(call); });
    Series& series = handle.choosing->series->series;
    if (!series.compares()) return move_by(engine, handle, series.mover(), call, same, independent);
    PartedCall parts(engine, handle, call);
    const PortionTrial::Divided divided = divide(handle, parts, call.direction == Direction::read);
    parts.divide(divided.units);
    series.see(divided);
    const auto move_portions = [&] {
        while (series.compares()) {
            const auto whose = series.trial()->next(divided, parts.units_left());
            if (!whose) break;
            meet(handle);  // who comes late is not to be counted against whoever waits for it
            const Clock::time_point begin = Clock::now();
            std::int64_t bytes = 0;
            parts.move(series.trial()->width(divided), [&](const Call& part) {
                bytes = bytes_asked(part);
                return move_by(engine, handle, *whose, part, same, independent);
            });
            const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
            const exchange::Group::Range slowest =
                range_of_all(handle, {parts.result() == MPI_SUCCESS ? -ns : -failed_ns, bytes});
            if (-slowest.least >= failed_ns) break;
            series.add(PortionTrial::Portion{*whose, -slowest.least, slowest.most});
        }
        const std::int64_t left = parts.units_left();
        if (left == 0) return;
        series.add_rest(divided, divided.bytes / divided.units * left);
        parts.move(left,
                   [&](const Call& part) { return move_by(engine, handle, series.mover(), part, same, independent); });
    };
    if (divided.units == 1) {
        move_portions();
        return parts.result();
    }
    {
        const QuietErrors quiet(call.fh);  // one call of the program has one error
        move_portions();
    }
    if (parts.result() != MPI_SUCCESS && call.raises) PMPI_File_call_errhandler(call.fh, parts.result());
    return parts.result();
}

}  // namespace ioweir::engine
