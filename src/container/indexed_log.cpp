// Logs on targets of their own: sending them on to storage, and going on in another one. What does not live here: everything else that a
// container with an index does (indexed.cpp).
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "container/files/data_header.hpp"
#include "container/files/placed_log.hpp"
#include "container/indexed.hpp"

namespace ioweir::container {

void IndexedContainer::watch_work() {
    const std::lock_guard guard(lock_);
    if (on_target_) watches_ = true;
}

std::vector<Container::Work> IndexedContainer::take_work() {
    const std::lock_guard guard(lock_);
    if (!watches_) return {};
    return {std::exchange(work_, {})};
}

std::string IndexedContainer::log_place() const {
    const std::lock_guard guard(lock_);
    return on_target_ ? place_ : std::string();
}

int IndexedContainer::sync_data() {
    for (const auto& left : left_logs_) {
        if (::fdatasync(left->descriptor()) != 0) return errno;
    }
    left_logs_.clear();
    const storage::Moment begin = storage::now();
    if (::fdatasync(data_->descriptor()) != 0) return errno;
    if (!watches_) return 0;
    work_.ns += storage::sync_ns(begin, begin, storage::now());
    flushes_.forget();
    return 0;
}

std::optional<Error> IndexedContainer::go_on_in(const std::string& place) {
    const std::lock_guard guard(lock_);
    const auto cannot = [&](const std::string& what, const std::string& why) {
        return Error{"a log cannot go on in another directory", what + ": " + why, "it goes on where it is"};
    };
    if (!data_ || !on_target_ || writers_.empty()) return cannot(place, "this process has no log on a target");
    const auto number = static_cast<std::uint32_t>(own_source_);
    if (number >= most_log_number - log_number_step || writers_.front().rank >= log_number_step)
        return cannot(place, "its rank's numbers of logs are used up");
    const std::int64_t source = own_source_ + log_number_step;
    auto file = make_placed_log(directory_, place, source);
    if (!file) return cannot(placed_log(directory_, place, source), std::strerror(file.error().number));
    const int descriptor = file.value().descriptor();
    auto data = take_over(below_, file.take());
    const std::string header = data_header(directory_, source);
    int error = below_.write_at(descriptor, header.data(), std::ssize(header), 0).error;
    // What is in the old one is put into the index as such: a batch is of one log.
    if (error == 0) error = append_all(false);
    if (error != 0) {
        (void)remove_log(directory_, source);
        return cannot(placed_log(directory_, place, source), std::strerror(error));
    }
    forget_own();
    loaded_ = false;
    if (log_end_ > sent_end_) below_.begin_flush(data_->descriptor(), log_end_ - sent_end_, sent_end_);
    left_logs_.push_back(std::exchange(data_, std::move(data)));
    own_source_ = source;
    place_ = place;
    sent_end_ = log_end_ = data_header_bytes;
    flushes_.leave();
    work_ = {};
    return std::nullopt;
}

}  // namespace ioweir::container
