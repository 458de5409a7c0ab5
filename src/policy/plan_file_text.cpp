// Writing plan files (see plan_file.hpp): every key of a rule that differs from its default, in the order of spec/plan_keys.toml.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/size_text.hpp"
#include "ioweir_generated/plan_keys.hpp"

namespace ioweir::policy {
using namespace planner;

namespace {

/// What each_key() calls: one function for each type of key.
class KeyWriter {
public:
    template <typename T>
    static std::vector<WrittenKey> write(const T& values) {
        KeyWriter writer;
        each_key(values, T{}, writer);
        return std::move(writer.keys_);
    }

    static std::string joined(const std::vector<WrittenKey>& keys, std::string_view separator) {
        std::string text;
        for (const WrittenKey& key : keys)
            text += (text.empty() ? "" : std::string(separator)) + std::string(key.name) + " = " + key.value;
        return text;
    }

    void text(const Key& key, const std::string& value, const std::string& usual) {
        if (key.required || value != usual) put(key, toml_string(value));
    }

    template <typename T>
    void choice(const Key& key, const T& value, const T& usual, Result<T> (* /*parse*/)(std::string_view)) {
        if (key.written || value != usual) put(key, toml_string(to_text(value)));
    }

    template <typename T>
    void word(const Key& key, const T& value, const T& usual, std::initializer_list<T> values) {
        for (std::size_t i = 0; i < values.size() && value != usual; ++i)
            if (values.begin()[i] == value) put(key, toml_string(key.words[i]));
    }
    void word(const Key& key, const std::string& value, const std::string& usual) { text(key, value, usual); }

    template <typename T>
    void size(const Key& key, const T& value, const T& usual, const bool* besides = nullptr) {
        if (!beside(key, besides) && value != usual) put(key, toml_string(exact_size_text(number_of(value))));
    }

    template <typename T>
    void number(const Key& key, const T& value, const T& usual, const bool* besides = nullptr) {
        if (!beside(key, besides) && value != usual) put(key, std::to_string(number_of(value)));
    }

    void share(const Key& key, const std::optional<double>& value, const std::optional<double>& usual) {
        if (value && value != usual) put(key, share_text(*value));
    }

    void truth(const Key& key, bool value, bool usual) {
        if (value != usual) put(key, value ? "true" : "false");
    }

    void list(const Key& key, const std::vector<std::string>& values, const std::vector<std::string>& usual,
              const bool* besides = nullptr) {
        if (beside(key, besides) || values == usual) return;
        std::string list;
        for (const std::string& value : values) list += (list.empty() ? "" : ", ") + toml_string(value);
        put(key, "[" + list + "]");
    }

    template <typename T>
    void table(const Key& key, const T& values, const T& /*usual*/) {
        if (const auto inner = write(values); !inner.empty()) put(key, "{ " + joined(inner, ", ") + " }");
    }

    void chunks(const Key& key, const std::vector<Hdf5Chunks>& values, const std::vector<Hdf5Chunks>& usual,
                const bool* besides) {
        if (beside(key, besides) || values == usual) return;
        std::string table;
        for (const Hdf5Chunks& one : values) {
            std::string shape;
            for (const std::int64_t length : one.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(length);
            table += (table.empty() ? "" : ", ") + toml_string(one.dataset) + " = [" + shape + "]";
        }
        put(key, "{ " + table + " }");
    }

private:
    static std::int64_t number_of(std::int64_t value) { return value; }
    static std::int64_t number_of(const std::optional<std::int64_t>& value) { return value.value_or(0); }

    void put(const Key& key, std::string value) { keys_.push_back({key.name, std::move(value)}); }

    bool beside(const Key& key, const bool* besides) {
        const bool there = besides != nullptr && *besides;
        if (there) put(key, toml_string(key.besides));
        return there;
    }

    std::vector<WrittenKey> keys_;
};

}  // namespace

std::string toml_string(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out += '\\';
            out += letter;
        } else if (code < 0x20 || code == 0x7f) {
            out += "\\u00";
            out += hex[code >> 4];
            out += hex[code & 15];
        } else {
            out += letter;
        }
    }
    return out + "\"";
}

std::vector<WrittenKey> written_keys(const FileRule& rule) { return KeyWriter::write(rule); }

std::string to_toml(const PlanFile& plan) {
    std::string text;
    for (const FileRule& rule : plan.files)
        text += (text.empty() ? "[[file]]\n" : "\n[[file]]\n") + KeyWriter::joined(written_keys(rule), "\n") + "\n";
    return text;
}

}  // namespace ioweir::policy
