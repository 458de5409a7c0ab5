// The mark beside an HDF5 file whose metadata wait in memory: a job that dies leaves it behind, and `ioweir check` finds it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "adapters/hdf5/file.hpp"
#include "base/guarded_files.hpp"
#include "base/raw_syscall.hpp"

namespace ioweir::hdf5 {
namespace {

std::string mark_of(const std::string& path) { return path + ".ioweir-held"; }

}  // namespace

std::string path_from_root(const std::string& path) {
    std::array<char, PATH_MAX> folder{};
    if (path.starts_with('/') || ::getcwd(folder.data(), folder.size()) == nullptr) return path;
    return std::string(folder.data()) + "/" + path;
}

std::string make_mark(const std::string& path) {
    const std::string mark = mark_of(path);
    // In a directory for all, anybody may have put anything there.
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(mark));
    if (!folder) return folder.error().message();
    struct stat status{};
    guarded::Fault fault = guarded::Fault::none;
    const guarded::Owners& owners = folder.value().owners();
    const int descriptor =
        guarded::open_judged<guarded::Direct>(folder.value().descriptor(), guarded::file_name_of(mark).c_str(),
                                              O_WRONLY | O_CREAT, 0666, owners, guarded::Use::write, status, &fault);
    if (descriptor < 0) return guarded::cannot_use(mark, errno, fault, &status, &owners).message();
    (void)raw::call(SYS_ftruncate, descriptor, 0);
    const std::string text =
        "ioweir-held 1\nThe metadata of the HDF5 file beside this one are in the memory of process " +
        std::to_string(::getpid()) +
        " and others until it flushes or closes the file.\nIf no such job runs any more: ioweir check FILE.\n";
    const ssize_t written = raw::write(descriptor, text.data(), text.size());
    raw::close(descriptor);
    return written == std::ssize(text) ? "" : mark + ": not written";
}

void remove_mark(const std::string& path) {
    const std::string mark = mark_of(path);
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(mark));
    if (folder) (void)folder.value().remove(guarded::file_name_of(mark));
}

}  // namespace ioweir::hdf5
