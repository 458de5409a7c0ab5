// Data of divided variables: blocking calls, non-blocking ones and their waiting.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "adapters/pnetcdf/access.hpp"
#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/file.hpp"

namespace ioweir::pnetcdf {

/// A non-blocking access that is begun.
struct Pending {
    int id = 0;
    Access access;
};

namespace {

constexpr int first_id = 0x4000'0000;  // the library's own count from 0

bool is_ours(int id) { return id >= first_id; }

std::string name_of(const File& file, int variable) {
    return file.logical.header.variables[static_cast<std::size_t>(variable)].name;
}

int refuse(const File& file, const Call& call, const std::string& what) {
    complain(file, std::string(call.symbol) + " was refused: " + what +
                       "; let such variables stay whole (min_ndims), or write the file without subfiles");
    return error_unsupported;
}

/// Keeps the first error.
void keep(int& error, int code) {
    if (error == no_error) error = code;
}

int begin(File& file, const Call& call, const ncsub::CallForm& form) {
    auto* request = argument<int*>(call, call.count - 1);
    if (request != nullptr) *request = no_request;
    Pending pending{first_id + file.next_id, Access(file, call, form)};
    if (pending.access.error() != no_error || pending.access.elements() == 0) return pending.access.error();
    // The type may be gone when it is needed.
    if (pending.access.unpacks())
        return refuse(file, call,
                      "in this version non-blocking calls do not read into derived datatypes from variables that are "
                      "divided over subfiles");
    if (request != nullptr) *request = pending.id;
    ++file.next_id;
    file.pending.push_back(std::make_shared<Pending>(std::move(pending)));
    return no_error;
}

int at_once(File& file, const Call& call, const ncsub::CallForm& form) {
    if (!form.collective) return error_collective;
    if (file.state == File::State::independent) return error_independent;
    // A rank whose arguments are wrong takes part all the same, with nothing.
    Access access(file, call, form);
    std::vector<Wanted> wanted;
    access.add_to(wanted);
    const int failure = exchange(file, wanted, form.writes());
    int error = access.error();
    keep(error, failure);
    for (const Wanted& one : wanted) keep(error, one.error);
    keep(error, access.finish());
    return error;
}

using Chosen = std::vector<std::shared_ptr<Pending>>;

/// Carries out those of one direction, of all ranks together; `errors`: one for each of `chosen`. Collective.
int carry_out(const File& file, const Chosen& chosen, std::vector<int>& errors, bool writing) {
    std::vector<Wanted> wanted;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i]->access.writes() != writing) continue;
        chosen[i]->access.add_to(wanted);
        owner.resize(wanted.size(), i);
    }
    const int failure = exchange(file, wanted, writing);
    for (std::size_t w = 0; w < wanted.size(); ++w) keep(errors[owner[w]], wanted[w].error);
    for (std::size_t i = 0; i < chosen.size(); ++i)
        if (chosen[i]->access.writes() == writing) keep(errors[i], chosen[i]->access.finish());
    return failure;
}

/// Those that a wait or cancel names by NC_REQ_ALL and its like.
bool is_meant(int number, const Pending& pending) {
    return number == all_requests || number == (pending.access.writes() ? all_puts : all_gets);
}

Chosen taken_by_kind(File& file, int number) {
    Chosen chosen;
    for (const auto& pending : file.pending)
        if (is_meant(number, *pending)) chosen.push_back(pending);
    std::erase_if(file.pending, [&](const auto& pending) { return is_meant(number, *pending); });
    return chosen;
}

std::shared_ptr<Pending> taken_by_id(File& file, int id) {
    const auto found =
        std::find_if(file.pending.begin(), file.pending.end(), [&](const auto& pending) { return pending->id == id; });
    if (found == file.pending.end()) return nullptr;
    std::shared_ptr<Pending> pending = *found;
    file.pending.erase(found);
    return pending;
}

/// The requests of a wait or cancel, the library's and ours apart.
struct Named {
    std::vector<int> theirs, their_places, their_statuses;
    Chosen ours;
    std::vector<int> our_places, statuses;
};

Named sorted(File& file, int count, const int* ids) {
    Named named;
    named.statuses.resize(static_cast<std::size_t>(std::max(count, 0)), no_error);
    for (int i = 0; i < count; ++i) {
        if (!is_ours(ids[i])) {
            named.theirs.push_back(ids[i]);
            named.their_places.push_back(i);
        } else if (auto pending = taken_by_id(file, ids[i])) {
            named.ours.push_back(std::move(pending));
            named.our_places.push_back(i);
        } else {
            named.statuses[static_cast<std::size_t>(i)] = error_request;
        }
    }
    named.their_statuses.resize(named.theirs.size(), no_error);
    return named;
}

/// Writes what the program is told: requests are gone, and statuses if it wants them.
int tell(const Named& named, const std::vector<int>& our_errors, int error, int* ids, int* statuses) {
    std::vector<int> all = named.statuses;
    for (std::size_t i = 0; i < named.theirs.size(); ++i)
        all[static_cast<std::size_t>(named.their_places[i])] = named.their_statuses[i];
    for (std::size_t i = 0; i < named.ours.size(); ++i)
        all[static_cast<std::size_t>(named.our_places[i])] = our_errors[i];
    for (std::size_t i = 0; i < all.size(); ++i) {
        keep(error, all[i]);
        ids[i] = no_request;
        if (statuses != nullptr) statuses[i] = all[i];
    }
    return error;
}

}  // namespace

int access_variable(File& file, const Call& call) {
    const auto form = *ncsub::parse_call(call.symbol);
    const auto variable = argument<int>(call, 1);
    const std::string name = "variable " + name_of(file, variable) + " is divided over subfiles, and in this version ";
    if (form.access == ncsub::Access::vard) return refuse(file, call, name + "vard calls are not carried out for such");
    if (!form.blocking()) return begin(file, call, form);
    if (file.state == File::State::define) return error_in_define;
    if (!form.collective && file.state == File::State::independent)
        return refuse(file, call, name + "independent calls are not carried out for such");
    return at_once(file, call, form);
}

int wait_all(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    auto* statuses = argument<int*>(call, 3);
    if (file.state != File::State::data || (count > 0 && ids == nullptr))
        return file.library->wait_all(file.master, count, ids, statuses);  // an error
    Named named;
    int error = no_error;
    if (count < 0) {
        named.ours = taken_by_kind(file, count);
        error = file.library->wait_all(file.master, count, nullptr, nullptr);
    } else {
        named = sorted(file, count, ids);
        error = file.library->wait_all(file.master, static_cast<int>(named.theirs.size()), named.theirs.data(),
                                       named.their_statuses.data());
    }
    // Which directions there are, on any rank.
    std::array<int, 2> any{};
    for (const auto& pending : named.ours) any[pending->access.writes() ? 0 : 1] = 1;
    if (PMPI_Allreduce(MPI_IN_PLACE, any.data(), 2, MPI_INT, MPI_MAX, file.comm) != MPI_SUCCESS) return error_file;
    std::vector<int> errors(named.ours.size(), no_error);
    int failure = no_error;
    if (any[0] != 0) keep(failure, carry_out(file, named.ours, errors, true));
    if (any[1] != 0) keep(failure, carry_out(file, named.ours, errors, false));
    for (int& one : errors) keep(one, failure);
    for (const int one : errors) keep(error, one);
    return count < 0 ? error : tell(named, errors, error, ids, statuses);
}

int wait_alone(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    const auto* ids = argument<const int*>(call, 2);
    bool ours = false;
    for (const auto& pending : file.pending)
        ours = ours || is_meant(count, *pending) ||
               (ids != nullptr && std::find(ids, ids + std::max(count, 0), pending->id) != ids + std::max(count, 0));
    if (ours && file.state == File::State::independent)
        return refuse(file, call,
                      "requests are for variables that are divided over subfiles, and in this version only "
                      "ncmpi_wait_all completes those");
    return file.library->wait(file.master, count, argument<int*>(call, 2), argument<int*>(call, 3));
}

int cancel(File& file, const Call& call) {
    const auto count = argument<int>(call, 1);
    auto* ids = argument<int*>(call, 2);
    auto* statuses = argument<int*>(call, 3);
    if (count < 0) {
        (void)taken_by_kind(file, count);
        return file.library->cancel(file.master, count, nullptr, nullptr);
    }
    if (ids == nullptr) return file.library->cancel(file.master, count, ids, statuses);
    Named named = sorted(file, count, ids);
    int error = no_error;
    if (!named.theirs.empty())
        error = file.library->cancel(file.master, static_cast<int>(named.theirs.size()), named.theirs.data(),
                                     named.their_statuses.data());
    return tell(named, std::vector<int>(named.ours.size(), no_error), error, ids, statuses);
}

}  // namespace ioweir::pnetcdf
