#include "storage/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/guarded_files.hpp"
#include "base/size_text.hpp"
#include "base/toml_reader.hpp"

namespace ioweir::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> top_level_keys{"kind", "state", "target"};
constexpr std::array<std::string_view, 5> target_keys{"name", "directory", "pool", "rate", "mounted"};

class Reader : TomlReader {
public:
    explicit Reader(std::string_view name) : TomlReader(name) {}

    Result<Manifest> read(const toml::table& document) {
        Manifest manifest;
        check_keys(document, top_level_keys);
        const std::string kind = text_of(document, "kind").value_or("directories");
        manifest.cephfs = kind == "cephfs";
        if (!manifest.cephfs && kind != "directories") {
            fail("unknown kind of storage targets", "'" + kind + "'" + at(document.get("kind")->source()),
                 "write \"directories\" or \"cephfs\"; Lustre needs no manifest");
        }
        manifest.state = text_of(document, "state").value_or("");
        if (ok() && !manifest.state.empty() && manifest.state.front() != '/') {
            fail("the state of token buckets is not an absolute path",
                 "'" + manifest.state + "'" + at(document.get("state")->source()),
                 "name a file in a directory in memory, such as /dev/shm/NAME");
        }
        const toml::node* targets = document.get("target");
        const toml::array* tables = targets == nullptr ? nullptr : targets->as_array();
        if (tables == nullptr || tables->empty()) {
            fail("a manifest without targets", name(), "write a [[target]] table for each");
        } else {
            for (auto&& element : *tables) read_target(element, manifest);
        }
        if (!ok()) return error();
        return manifest;
    }

private:
    std::optional<std::string> text_of(const toml::table& table, std::string_view key) {
        const toml::node* node = table.get(key);
        if (node == nullptr) return std::nullopt;
        std::string text = TomlReader::text_of(key, *node);
        if (text.empty())
            fail("an empty text", std::string(key) + at(node->source()), "write a value, or leave it out");
        return ok() ? std::optional(std::move(text)) : std::nullopt;
    }

    void read_target(const toml::node& element, Manifest& manifest) {
        const toml::table* table = element.as_table();
        if (table == nullptr)
            return fail("not a table", "target" + at(element.source()), "write [[target]] and the keys below it");
        check_keys(*table, target_keys);
        const std::string here = at(element.source());
        ManifestTarget target;
        target.name = text_of(*table, "name").value_or("");
        target.directory = text_of(*table, "directory").value_or("");
        target.pool = text_of(*table, "pool").value_or("");
        if (target.name.empty())
            fail("a target without a name", "[[target]]" + here, "add a line such as name = \"t0\"");
        const bool right = manifest.cephfs ? !target.pool.empty() && target.directory.empty()
                                           : !target.directory.empty() && target.pool.empty();
        if (!right) {
            fail(manifest.cephfs ? "a target of a CephFS is a pool" : "a target is a directory",
                 "'" + target.name + "'" + here,
                 manifest.cephfs ? "write pool = \"NAME\" and no directory" : "write directory = \"PATH\" and no pool");
        }
        read_rate(*table, target, manifest);
        if (const toml::node* node = table->get("mounted")) {
            if (node->as_boolean() == nullptr || manifest.cephfs) {
                fail("not a yes or no about a directory", "mounted" + at(node->source()),
                     "write mounted = true or leave it out");
            } else {
                target.mounted = node->as_boolean()->get();
            }
        }
        for (const ManifestTarget& other : manifest.targets) {
            if (other.name == target.name)
                fail("two targets of one name", "'" + target.name + "'" + here, "give each its own");
            if (other.directory == target.directory && other.pool == target.pool) {
                fail("a place that is two targets", "'" + other.name + "' and '" + target.name + "'" + here,
                     "targets do not share a directory or a pool");
            }
        }
        manifest.targets.push_back(std::move(target));
    }

    void read_rate(const toml::table& table, ManifestTarget& target, const Manifest& manifest) {
        const toml::node* node = table.get("rate");
        if (node == nullptr || !ok()) return;
        const auto* text = node->as_string();
        const auto parsed =
            text == nullptr ? Result<std::int64_t>(Error{"not a rate", "", ""}) : parse_size(text->get());
        if (!parsed || parsed.value() < 1) {
            fail("not a rate", "rate" + at(node->source()), "write what moves in a second, such as rate = \"25 MB\"");
        } else if (manifest.state.empty()) {
            fail("a rate without a state", "rate" + at(node->source()),
                 "add state = \"/dev/shm/NAME\" above the targets: all processes share the token buckets through that "
                 "file");
        } else {
            target.rate = parsed.value();
        }
    }
};

constexpr std::int64_t most_bytes = 4 << 20;

/// Whether its owner may say where files of this process go. A second name may have been made by whoever can write in the directory.
bool is_trusted(const struct stat& manifest, const struct stat& directory) {
    const bool of_directory = manifest.st_uid == directory.st_uid && (directory.st_mode & S_IWOTH) == 0;
    return of_directory || ((manifest.st_uid == 0 || manifest.st_uid == ::geteuid()) && manifest.st_nlink == 1);
}

/// The manifest in a directory; nothing where there is none, or none that could be looked at.
Result<std::optional<FoundManifest>> manifest_in(const std::string& directory) {
    const auto folder = guarded::Folder::open(directory);
    if (!folder) return std::optional<FoundManifest>();
    const std::string path = (fs::path(directory) / manifest_name).string();
    struct stat info{};
    const int fd = guarded::open_beneath<guarded::Hooked>(folder.value().descriptor(), manifest_name, O_RDONLY);
    if (fd < 0) {
        if (errno == ELOOP || errno == ENXIO) return guarded::cannot_use(path, errno);
        return std::optional<FoundManifest>();
    }
    const bool known = ::fstat(fd, &info) == 0;
    const guarded::File file(fd, info, path);
    if (!known || !S_ISREG(info.st_mode))
        return guarded::cannot_use(path, guarded::number_of(guarded::Fault::not_a_file, info.st_mode),
                                   guarded::Fault::not_a_file, &info);
    if (!is_trusted(info, folder.value().status())) {
        return Error{"a manifest of storage targets belongs to somebody else", path,
                     "it has to belong to you, to root, or to the owner of its directory if only they may write there"};
    }
    if (info.st_size > most_bytes) return Error{"too large for a manifest", path, "4 MiB at most"};
    const auto text = file.read_all(most_bytes);
    if (!text) return text.error();
    auto manifest = parse_manifest(text.value(), path);
    if (!manifest) return manifest.error();
    return std::optional(FoundManifest{directory, manifest.take(), info.st_uid});
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view toml_text, std::string_view name) {
    return read_toml<Manifest>(toml_text, name, "a manifest",
                               [&](const toml::table& document) { return Reader(name).read(document); });
}

Result<std::optional<FoundManifest>> find_manifest(const std::string& path) {
    std::error_code failure;
    fs::path at = fs::weakly_canonical(fs::absolute(path.empty() ? "." : path, failure), failure);
    if (failure) return Error{"cannot tell where a path is", path, failure.message()};
    if (!fs::is_directory(at, failure)) at = at.parent_path();
    for (;; at = at.parent_path()) {
        auto found = manifest_in(at.string());
        if (!found || found.value()) return found;
        if (at == at.parent_path()) return std::optional<FoundManifest>();
    }
}

}  // namespace ioweir::storage
