#include "partition/set_comms.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace ioweir::partition {

struct SetComms::Kept {
    MPI_Comm all = MPI_COMM_NULL;
    std::map<std::int64_t, MPI_Comm> of_files;  ///< by the number of files
    bool in_use = true;
    bool stays = false;  ///< with the program's communicator, as long as that is there

    /// Collective.
    void free() {
        for (auto& [files, comm] : of_files) MPI_Comm_free(&comm);
        of_files.clear();
        MPI_Comm_free(&all);
    }
};

namespace {

/// MPI libraries have room for some thousands of communicators.
constexpr std::size_t most_kept = 4;
constexpr std::size_t most_divisions = 4;

std::mutex& lock() {
    static std::mutex mutex;
    return mutex;
}

std::vector<std::shared_ptr<SetComms::Kept>>& all_kept() {
    static std::vector<std::shared_ptr<SetComms::Kept>> kept;
    return kept;
}

/// The program frees its communicator, which all its ranks do together: what was kept with it goes, too, or with the set that uses it.
int forget(MPI_Comm comm, int /*key*/, void* value, void* /*extra*/) {
    if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF) return MPI_SUCCESS;  // by MPI_Finalize
    std::shared_ptr<SetComms::Kept> mine;
    {
        const std::lock_guard held(lock());
        auto& all = all_kept();
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == value; });
        if (found == all.end()) return MPI_SUCCESS;
        mine = *found;
        all.erase(found);
        mine->stays = false;
        if (mine->in_use) return MPI_SUCCESS;
    }
    mine->free();
    return MPI_SUCCESS;
}

int key() {
    static const int made = [] {
        int keyval = MPI_KEYVAL_INVALID;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, nullptr);
        return keyval;
    }();
    return made;
}

SetComms::Kept* kept_with(MPI_Comm comm) {
    void* value = nullptr;
    int there = 0;
    MPI_Comm_get_attr(comm, key(), &value, &there);
    return there != 0 ? static_cast<SetComms::Kept*>(value) : nullptr;
}

}  // namespace

bool SetComms::has_kept(MPI_Comm comm) {
    const std::lock_guard held(lock());
    const Kept* const kept = kept_with(comm);
    return kept != nullptr && !kept->in_use;
}

bool SetComms::would_keep(MPI_Comm comm) {
    const std::lock_guard held(lock());
    return all_kept().size() < most_kept && kept_with(comm) == nullptr;
}

SetComms SetComms::take(MPI_Comm comm, bool kept, bool stays) {
    if (kept) {
        const std::lock_guard held(lock());
        Kept* const wanted = kept_with(comm);
        wanted->in_use = true;
        for (const auto& one : all_kept()) {
            if (one.get() == wanted) return SetComms(one);
        }
    }
    auto made = std::make_shared<Kept>();
    MPI_Comm_dup(comm, &made->all);
    if (stays) {
        const std::lock_guard held(lock());
        made->stays = true;
        all_kept().push_back(made);
        MPI_Comm_set_attr(comm, key(), made.get());
    }
    return SetComms(std::move(made));
}

SetComms::SetComms(SetComms&& other) noexcept : kept_(std::move(other.kept_)) {}

SetComms::~SetComms() {
    if (!kept_) return;
    {
        const std::lock_guard held(lock());
        kept_->in_use = false;
        if (kept_->stays) return;
    }
    kept_->free();
}

MPI_Comm SetComms::all() const { return kept_->all; }

MPI_Comm SetComms::of_file(std::int64_t file, std::int64_t files) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(kept_->all, &rank);
    MPI_Comm_size(kept_->all, &ranks);
    if (files == 1) return kept_->all;
    if (files == ranks) return MPI_COMM_SELF;
    if (const auto found = kept_->of_files.find(files); found != kept_->of_files.end()) return found->second;
    if (kept_->of_files.size() == most_divisions) {  // of a program that tries many
        MPI_Comm_free(&kept_->of_files.begin()->second);
        kept_->of_files.erase(kept_->of_files.begin());
    }
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(kept_->all, static_cast<int>(file), rank, &made);
    return kept_->of_files[files] = made;
}

}  // namespace ioweir::partition
