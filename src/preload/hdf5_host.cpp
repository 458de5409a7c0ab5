// Puts the adapter for HDF5 between the hooks of HDF5's functions and the library.
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "adapters/hdf5/adapter.hpp"
#include "policy/plan_file.hpp"
#include "preload/adapter_host.hpp"
#include "preload/engine_host.hpp"
#include "storage/file_layout.hpp"

namespace ioweir::preload {
namespace {

/// Of a file or directory that is there: bytes of a stripe, 0 where nobody tells.
std::int64_t stripe_at(const char* path) {
    const auto layout = storage::read_layout([path](const char* name, void* value, std::size_t room) -> std::int64_t {
        const ssize_t length = ::getxattr(path, name, value, room);
        return length >= 0 ? length : -errno;
    });
    return layout.stripe_bytes;
}

/// The file's own stripes; else those of its directory, which new files there get; else a block of the file system.
std::int64_t stripe_of(const char* path) {
    const std::string whole(path);
    const std::size_t slash = whole.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : whole.substr(0, std::max<std::size_t>(1, slash));
    for (const char* place : {path, directory.c_str()})
        if (const std::int64_t bytes = stripe_at(place); bytes > 0) return bytes;
    struct statfs system{};
    if (::statfs(directory.c_str(), &system) != 0) return 0;
    return std::max<std::int64_t>(4096, system.f_bsize);
}

}  // namespace

void install_hdf5(const Services& services, const policy::PlanFile& plan) {
    if (services.carry_out == nullptr) return;
    hdf5::install(plan, {services.find_beside, services.find_program_object, adapter_host::note, stripe_of},
                  services.world);
    adapter_host::install<hdf5::carry_out>(services, tracer::library::Api::hdf5);
}

void shut_down_hdf5() { hdf5::shut_down(); }

}  // namespace ioweir::preload
