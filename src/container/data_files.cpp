#include "container/data_files.hpp"

namespace ioweir::container {

DataFile::~DataFile() {
    if (is_intact()) below_.close(descriptor_);
}

std::shared_ptr<DataFile> DataFile::found_again(guarded::File found) const {
    const bool same =
        found.descriptor() >= 0 && found.status().st_dev == status_.st_dev && found.status().st_ino == status_.st_ino;
    return same ? take_over(below_, std::move(found)) : std::make_shared<DataFile>(below_, -1, status_);
}

std::shared_ptr<DataFile> take_over(storage::Backend& below, guarded::File file) {
    below.note_opened(file.descriptor(), file.path().c_str());
    const struct stat status = file.status();
    return std::make_shared<DataFile>(below, file.release(), status);
}

DataFiles::Got DataFiles::get(std::int64_t source) {
    for (auto entry = open_.begin(); entry != open_.end(); ++entry) {
        if (entry->source != source) continue;
        open_.splice(open_.begin(), open_, entry);
        return {entry->file, 0, false};
    }
    auto opened = open_file_(source);
    if (!opened) return {nullptr, opened.error().number, false, opened.error().value};
    if (open_.size() >= most) open_.pop_back();
    open_.push_front({source, take_over(below_, opened.take())});
    return {open_.front().file, 0, true};
}

void DataFiles::forget(std::int64_t source) {
    open_.remove_if([&](const Entry& entry) { return entry.source == source; });
}

void DataFiles::forget_lost() {
    open_.remove_if([](const Entry& entry) { return !entry.file->is_intact(); });
}

}  // namespace ioweir::container
