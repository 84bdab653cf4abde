#include "cli/sql_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "base/format.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/shown.h"
#include "report/npz.h"

namespace hotlap {
namespace {

constexpr std::size_t kRowsForWidths = 1'000;
constexpr std::size_t kCellColumnsMax = 80;
constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53U;
constexpr std::size_t kNpzCellsMax = 50'000'000;  // 400 MB of numbers

bool is_number(const Cell& cell) {
  return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<double>(cell);
}

class TableOutput final : public SqlOutput {
 public:
  TableOutput(std::size_t columns, std::ostream& out) : columns_(columns), out_(out) {}

  void columns(std::span<const std::string> names) override {
    names_.clear();
    for (const std::string& name : names) names_.push_back(one_line(name));
    is_right_.assign(names_.size(), true);
  }

  Result<void> row(std::span<const Cell> cells) override {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      texts.push_back(shown(cells[i]));
      if (std::holds_alternative<std::string_view>(cells[i])) is_right_[i] = false;
    }
    ++count_;
    if (is_streaming_) {
      write(texts);
    } else {
      rows_.push_back(std::move(texts));
      if (rows_.size() >= kRowsForWidths) begin();
    }
    return stream_state();
  }

  Result<void> finish() override {
    if (!is_streaming_) begin();
    out_ << format("({} row{})\n", count_, count_ == 1 ? "" : "s");
    return stream_state();
  }

 private:
  Result<void> stream_state() const {
    if (out_.good()) return {};
    return Error{ErrorCode::kCancelled, "nobody reads the output"};
  }

  static std::string shown(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return format("{}", *whole);
    if (const auto* real = std::get_if<double>(&cell)) {
      const double size = std::abs(*real);
      return size != 0 && (size >= 1e9 || size < 1e-4) ? format("{:.6g}", *real) : format("{:.7g}", *real);
    }
    if (const auto* text = std::get_if<std::string_view>(&cell)) return cut_to(one_line(*text), kCellColumnsMax);
    return "NULL";
  }

  void begin() {
    is_streaming_ = true;
    widths_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::size_t width = columns_of(names_[i]);
      for (const auto& row : rows_) width = std::max(width, columns_of(row[i]));
      widths_.push_back(width);
    }
    write(names_);
    std::string rule;
    for (const std::size_t width : widths_) rule += (rule.empty() ? "" : "  ") + std::string(width, '-');
    out_ << cut_to(rule, columns_) << '\n';
    for (const auto& row : rows_) write(row);
    rows_.clear();
  }

  void write(const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t width = columns_of(cells[i]);
      const std::string blanks(widths_[i] > width ? widths_[i] - width : 0, ' ');
      if (i > 0) line += "  ";
      line += is_right_[i] ? blanks + cells[i] : cells[i] + blanks;
    }
    const std::size_t end = line.find_last_not_of(' ');
    out_ << cut_to(line.substr(0, end == std::string::npos ? 0 : end + 1), columns_) << '\n';
  }

  std::size_t columns_;
  std::ostream& out_;
  std::vector<std::string> names_;
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
  std::uint64_t count_ = 0;
  bool is_streaming_ = false;
};

class JsonOutput final : public SqlOutput {
 public:
  explicit JsonOutput(std::ostream& out) : out_(out) {}

  void columns(std::span<const std::string> names) override {
    JsonWriter json;
    json.begin_array();
    for (const std::string& name : names) json.value(std::string_view(name));
    json.end_array();
    out_ << "{\"schema\":1,\"columns\":" << json.take() << ",\"rows\":[";
    seen_.resize(names.size());
  }

  Result<void> row(std::span<const Cell> cells) override {
    JsonWriter json;
    json.begin_array();
    for (std::size_t i = 0; i < cells.size(); ++i) add(cells[i], seen_[i], json);
    json.end_array();
    out_ << (count_++ == 0 ? "\n" : ",\n") << json.take();
    if (!out_.good()) return Error{ErrorCode::kCancelled, "nobody reads the output"};
    return {};
  }

  Result<void> finish() override {
    out_ << "\n],\"types\":[";
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const Seen& seen = seen_[i];
      const int kinds = int{seen.whole} + int{seen.real} + int{seen.text};
      out_ << (i == 0 ? "\"" : ",\"")
           << (kinds == 0                ? "null"
               : seen.text && kinds == 1 ? "text"
               : seen.text               ? "mixed"
               : seen.real               ? "real"
                                         : "integer")
           << '"';
    }
    out_ << "]}\n";
    return {};
  }

 private:
  struct Seen {
    bool whole = false;
    bool real = false;
    bool text = false;
  };

  static void add(const Cell& cell, Seen& seen, JsonWriter& json) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
      seen.whole = true;
      // A double, which is all that many readers have, loses digits of larger ones.
      if (*whole > kExactInDouble || *whole < -kExactInDouble) {
        json.value(std::string_view(format("{}", *whole)));
      } else {
        json.value(*whole);
      }
    } else if (const auto* real = std::get_if<double>(&cell)) {
      seen.real = true;
      json.value(*real);
    } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
      seen.text = true;
      json.value(*text);
    } else {
      json.null();
    }
  }

  std::ostream& out_;
  std::vector<Seen> seen_;
  std::uint64_t count_ = 0;
};

class CsvOutput final : public SqlOutput {
 public:
  explicit CsvOutput(std::ostream& out) : out_(out) {}

  void columns(std::span<const std::string> names) override {
    std::string line;
    for (const std::string& name : names) line += (line.empty() ? "" : ",") + quoted(name, false);
    out_ << line << '\n';
  }

  Result<void> row(std::span<const Cell> cells) override {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += ',';
      if (const auto* whole = std::get_if<std::int64_t>(&cells[i])) line += format("{}", *whole);
      if (const auto* real = std::get_if<double>(&cells[i]); real != nullptr && std::isfinite(*real)) {
        line += format("{}", *real);
      }
      // An empty text is not NULL.
      if (const auto* text = std::get_if<std::string_view>(&cells[i])) line += quoted(*text, true);
    }
    out_ << line << '\n';
    if (!out_.good()) return Error{ErrorCode::kCancelled, "nobody reads the output"};
    return {};
  }

  Result<void> finish() override { return {}; }

 private:
  static std::string quoted(std::string_view text, bool shows_empty) {
    if (text.empty() && shows_empty) return "\"\"";
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  }

  std::ostream& out_;
};

// Whole numbers where every cell is one, else floating point with NaN for NULL, else text with "" for NULL.
class NpzOutput final : public SqlOutput {
 public:
  explicit NpzOutput(std::ostream& out) : out_(out) {}

  void columns(std::span<const std::string> names) override {
    names_.assign(names.begin(), names.end());
    columns_.resize(names_.size());
  }

  Result<void> row(std::span<const Cell> cells) override {
    cells_ += cells.size();
    if (cells_ > kNpzCellsMax) {
      return Error{ErrorCode::kResourceLimit, format("more than {} values: ask for less, or for csv", kNpzCellsMax)};
    }
    for (std::size_t i = 0; i < cells.size(); ++i) columns_[i].add(cells[i]);
    return {};
  }

  Result<void> finish() override {
    NpzWriter npz(out_);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      // Two columns of one name are two arrays.
      std::string name = names_[i];
      const auto same = std::count(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(i), names_[i]);
      if (same > 0) name += format("_{}", same + 1);
      HOTLAP_TRY(npz.add(name, columns_[i].npy()));
      columns_[i] = Column();
    }
    return npz.finish();
  }

 private:
  class Column {
   public:
    void add(const Cell& cell) {
      if (texts_.empty() && !std::holds_alternative<std::string_view>(cell)) {
        const auto* whole = std::get_if<std::int64_t>(&cell);
        is_whole_ = is_whole_ && whole != nullptr;
        if (is_whole_) {
          wholes_.push_back(*whole);
        } else {
          to_reals();
          reals_.push_back(real_of(cell));
        }
        return;
      }
      if (texts_.empty()) to_texts();
      texts_.push_back(text_of(cell));
    }

    Bytes npy() const {
      if (!texts_.empty()) return npy_of(texts_);
      return is_whole_ ? npy_of(wholes_) : npy_of(reals_);
    }

   private:
    static double real_of(const Cell& cell) {
      if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
      const auto* real = std::get_if<double>(&cell);
      return real == nullptr ? std::nan("") : *real;
    }
    static std::string text_of(const Cell& cell) {
      if (const auto* text = std::get_if<std::string_view>(&cell)) return std::string(*text);
      return is_number(cell) ? number_text(real_of(cell)) : std::string();
    }
    static std::string number_text(double number) { return std::isnan(number) ? std::string() : format("{}", number); }
    void to_reals() {
      for (const std::int64_t whole : wholes_) reals_.push_back(static_cast<double>(whole));
      wholes_.clear();
    }
    void to_texts() {
      to_reals();
      for (const double real : reals_) texts_.push_back(number_text(real));
      reals_.clear();
      is_whole_ = false;
    }

    bool is_whole_ = true;
    std::vector<std::int64_t> wholes_;
    std::vector<double> reals_;
    std::vector<std::string> texts_;
  };

  std::ostream& out_;
  std::vector<std::string> names_;
  std::vector<Column> columns_;
  std::size_t cells_ = 0;
};

}  // namespace

Result<std::unique_ptr<SqlOutput>> make_sql_output(std::string_view name, std::size_t columns, std::ostream& out) {
  if (name == "table") return std::unique_ptr<SqlOutput>(new TableOutput(columns, out));
  if (name == "json") return std::unique_ptr<SqlOutput>(new JsonOutput(out));
  if (name == "csv") return std::unique_ptr<SqlOutput>(new CsvOutput(out));
  if (name == "npz") return std::unique_ptr<SqlOutput>(new NpzOutput(out));
  return Error{ErrorCode::kInvalidInput, format("no format {}; there are: table, json, csv, npz", one_line(name))};
}

}  // namespace hotlap
