#include "engine/files/netcdf_places.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/random_hex.hpp"
#include "base/raw_syscall.hpp"
#include "engine/files/probing.hpp"
#include "engine/state.hpp"

namespace ioweir::engine {
namespace {

std::string last_component(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// A file in another directory, whose name is no other file's there, and a link to it at `path`. Closed to others until it is a subfile, which
/// has its master's access. 0 or an errno value; then there is neither.
int make_linked(const std::string& directory, const std::string& path) {
    char* whole = ::realpath(directory.c_str(), nullptr);
    if (whole == nullptr) return errno;
    const std::string target = std::string(whole) + "/" + random_hex(8) + "." + last_component(path);
    std::free(whole);
    const int file = raw::openat(AT_FDCWD, target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    raw::close(file);
    if (::symlink(target.c_str(), path.c_str()) == 0) return 0;
    const int error = errno;
    ::unlink(target.c_str());
    return error;
}

int make_on(Placing& placing, std::int64_t number, const std::string& path) {
    if (!placing.directories.empty())
        return make_linked(placing.directories[static_cast<std::size_t>(number) % placing.directories.size()], path);
    const std::int32_t target = placing.chosen[static_cast<std::size_t>(number) % placing.chosen.size()];
    const storage::Opened made = placing.targets->create(path, layout::StripeLayout::unstriped(target), O_WRONLY, 0600);
    if (made.error == 0) raw::close(made.descriptor);
    return made.error;
}

}  // namespace

NetcdfPlaces place_netcdf(const std::string& path, MPI_Comm comm, const policy::FileRule& rule) {
    NetcdfPlaces places;
    places.count = rule.netcdf.subfiles;
    Engine* running = engine();
    if (running == nullptr) {
        places.why_not = "the plan's engine is not there";
        return places;
    }
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    auto placing = std::make_shared<Placing>();
    if (!rule.netcdf.automatic && !rule.targets.empty()) {
        placing->directories = rule.targets;
    } else {
        Handle handle;
        handle.path = path;
        handle.rank = rank;
        PMPI_Comm_size(comm, &handle.size);
        handle.strategy.mapping = {planner::MappingKind::subfiles, rule.netcdf.subfiles};
        *placing = find_places(*running, handle, comm, rule, true);
    }
    if (rank != 0) return places;
    places.said = placing->said;
    places.why_not = placing->why_not;
    if (placing->count > 0) places.count = placing->count;
    if (placing->directories.empty() && !placing->targets) return places;
    places.make = [placing, running](std::int64_t number, const std::string& file) {
        const StorageScope scope(*running);
        ::unlink(file.c_str());  // what a file of that name has left
        return make_on(*placing, number, file);
    };
    return places;
}

}  // namespace ioweir::engine
