#include "container/container.hpp"

#include <cerrno>

#include "container/indexed.hpp"
#include "container/striped.hpp"

namespace ioweir::container {

Result<std::unique_ptr<Container>> Container::open(storage::Backend& below, Clock& clock, Directory directory,
                                                   Role role) {
    return directory.shape.kind == Shape::Kind::subfiles
               ? StripedContainer::open(below, clock, std::move(directory), role)
               : IndexedContainer::open(below, clock, std::move(directory), role);
}

void Container::add_watcher(IndexWatcher&) {}
void Container::remove_watcher(IndexWatcher&) {}

int Container::reload(std::optional<std::int64_t>) { return 0; }

std::optional<Error> Container::redivide(const std::vector<std::int64_t>&) {
    return Error{"a container without subfiles", directory_.path, "only their stripes can be dealt anew"};
}

std::optional<Error> Container::go_on_in(const std::string& place) {
    return Error{"a container without logs on targets", place, "only these can go on elsewhere"};
}

storage::Opened Container::attempt_open(const char*, int, mode_t) { return {-1, ENOTSUP}; }
int Container::attempt_close(int) { return ENOTSUP; }
int Container::attempt_allocate(int, int, std::int64_t, std::int64_t) { return -EOPNOTSUPP; }

}  // namespace ioweir::container
