#include "container/data_files.hpp"

namespace ioweir::container {

DataFiles::Got DataFiles::get(std::int64_t source) {
    for (auto entry = open_.begin(); entry != open_.end(); ++entry) {
        if (entry->source != source) continue;
        open_.splice(open_.begin(), open_, entry);
        return {entry->file, 0, false};
    }
    const storage::Opened opened = below_.open(path_of_(source).c_str(), flags_);
    if (opened.descriptor < 0) return {nullptr, opened.error, false};
    if (open_.size() >= most) open_.pop_back();
    open_.push_front({source, std::make_shared<DataFile>(below_, opened.descriptor)});
    return {open_.front().file, 0, true};
}

void DataFiles::forget(std::int64_t source) {
    open_.remove_if([&](const Entry& entry) { return entry.source == source; });
}

}  // namespace ioweir::container
