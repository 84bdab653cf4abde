#include "analysis/operator_detail.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace hotlap {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr double kFlopsMax = 1e21;  // of one call: beyond it the shapes are damage

// "[[2, 4], [], [1]]"
std::string shown(const std::vector<Shape>& shapes) {
  std::string out = "[";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0) out += ", ";
    out += '[';
    for (std::size_t j = 0; j < shapes[i].size(); ++j) out += format("{}{}", j > 0 ? ", " : "", shapes[i][j]);
    out += ']';
  }
  return out + "]";
}

std::string text_of(const JsonValue& value) {
  if (auto text = value.text()) return *text;
  if (const auto number = value.integer()) return format("{}", *number);
  return {};
}

double product(const Shape& shape, std::size_t from, std::size_t to) {
  double out = 1;
  for (std::size_t i = from; i < std::min(to, shape.size()); ++i) out *= static_cast<double>(shape[i]);
  return out;
}
double product(const Shape& shape) { return product(shape, 0, shape.size()); }

const Shape* shape_of(const OperatorDetail& detail, std::size_t input) {
  if (input >= detail.shapes.size() || detail.shapes[input].empty()) return nullptr;
  return &detail.shapes[input];
}

// "[1, 2]" or "1"
std::optional<Shape> list_of(const OperatorDetail& detail, std::size_t input) {
  if (input >= detail.values.size()) return std::nullopt;
  std::string_view text = trim(detail.values[input]);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  Shape out;
  for (const std::string_view word : split(text, ',')) {
    const auto number = parse_i64(trim(word));
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::optional<bool> truth_of(const OperatorDetail& detail, std::size_t input) {
  if (input >= detail.values.size()) return std::nullopt;
  if (detail.values[input] == "True" || detail.values[input] == "1") return true;
  if (detail.values[input] == "False" || detail.values[input] == "0") return false;
  return std::nullopt;
}

std::optional<double> matrix_flops(const Shape* a, const Shape* b) {
  if (a == nullptr || b == nullptr || a->size() != b->size() || a->size() < 2 || a->size() > 3) return std::nullopt;
  const std::size_t n = a->size();
  if ((*a)[n - 1] != (*b)[n - 2] || (n == 3 && (*a)[0] != (*b)[0])) return std::nullopt;
  return 2 * product(*a) * static_cast<double>(b->back());
}

// As torch.matmul takes them: vectors, matrices and batches of them, which are repeated where they fit.
std::optional<double> matmul_flops(const Shape* first, const Shape* second) {
  if (first == nullptr || second == nullptr) return std::nullopt;
  Shape a = *first;
  Shape b = *second;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (a.back() != b[b.size() - 2]) return std::nullopt;
  double batch = 1;
  const std::size_t dimensions = std::max(a.size(), b.size()) - 2;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto size_in = [&](const Shape& shape) {
      const std::size_t own = shape.size() - 2;
      return i + own < dimensions ? 1 : shape[i + own - dimensions];
    };
    if (size_in(a) != size_in(b) && size_in(a) != 1 && size_in(b) != 1) return std::nullopt;
    batch *= static_cast<double>(std::max(size_in(a), size_in(b)));
  }
  const std::size_t n = a.size();
  return 2 * batch * static_cast<double>(a[n - 2]) * static_cast<double>(a[n - 1]) * static_cast<double>(b.back());
}

std::optional<double> linear_flops(const Shape* input, const Shape* weight) {
  if (input == nullptr || weight == nullptr || weight->size() != 2 || input->back() != weight->back())
    return std::nullopt;
  return 2 * product(*input) * static_cast<double>(weight->front());
}

// Where the arguments of a convolution stand.
struct ConvolutionForm {
  std::string_view name;
  std::size_t stride;
  std::size_t padding;
  std::size_t dilation;
  std::size_t transposed;  // SIZE_MAX: it is not
};
constexpr std::array<ConvolutionForm, 8> kConvolutions{{{"aten::conv1d", 3, 4, 5, SIZE_MAX},
                                                        {"aten::conv2d", 3, 4, 5, SIZE_MAX},
                                                        {"aten::conv3d", 3, 4, 5, SIZE_MAX},
                                                        {"aten::convolution", 3, 4, 5, 6},
                                                        {"aten::_convolution", 3, 4, 5, 6},
                                                        {"aten::cudnn_convolution", 3, 2, 4, SIZE_MAX},
                                                        {"aten::miopen_convolution", 4, 3, 5, SIZE_MAX},
                                                        {"aten::mkldnn_convolution", 4, 3, 5, SIZE_MAX}}};

std::optional<double> convolution_flops(const ConvolutionForm& form, const OperatorDetail& detail) {
  const Shape* const input = shape_of(detail, 0);
  const Shape* const weight = shape_of(detail, 1);
  if (input == nullptr || weight == nullptr || weight->size() < 3 || input->size() != weight->size())
    return std::nullopt;
  // Batch, channels, then space; weights are output channels, input channels of a group, then space.
  const double kernel = product(*weight, 1, weight->size());
  if (form.transposed != SIZE_MAX) {
    const auto is_transposed = truth_of(detail, form.transposed);
    if (!is_transposed) return std::nullopt;
    if (*is_transposed) return 2 * product(*input) * kernel;  // each input makes a kernel's worth of outputs
  }
  const auto stride = list_of(detail, form.stride);
  const auto padding = list_of(detail, form.padding);
  const auto dilation = list_of(detail, form.dilation);
  if (!stride || !padding || !dilation) return std::nullopt;
  double outputs = static_cast<double>(input->front()) * static_cast<double>(weight->front());
  for (std::size_t i = 2; i < input->size(); ++i) {
    const auto in = [&](const Shape& list) {
      return list.size() == 1 ? list[0] : i - 2 < list.size() ? list[i - 2] : 0;
    };
    if (in(*stride) <= 0 || in(*dilation) <= 0) return std::nullopt;
    const double reach = static_cast<double>(in(*dilation)) * static_cast<double>((*weight)[i] - 1) + 1;
    const double room = static_cast<double>((*input)[i]) + 2 * static_cast<double>(in(*padding)) - reach;
    if (room < 0) return std::nullopt;
    outputs *= std::floor(room / static_cast<double>(in(*stride))) + 1;
  }
  return 2 * outputs * kernel;
}

// Gradients of the input and of the weights take what the forward pass takes, each.
std::optional<double> convolution_backward_flops(const OperatorDetail& detail) {
  constexpr std::size_t kTransposed = 7;
  constexpr std::size_t kMask = 10;
  const Shape* const gradient = shape_of(detail, 0);
  const Shape* const input = shape_of(detail, 1);
  const Shape* const weight = shape_of(detail, 2);
  const auto is_transposed = truth_of(detail, kTransposed);
  if (gradient == nullptr || input == nullptr || weight == nullptr || weight->size() < 3 || !is_transposed)
    return std::nullopt;
  if (kMask >= detail.values.size()) return std::nullopt;
  const std::string_view mask = detail.values[kMask];
  double gradients = 0;
  std::size_t at = 0;
  for (const std::string_view word : split(mask, ',')) {
    if (at++ < 2 && word.find("True") != std::string_view::npos) ++gradients;
  }
  const double kernel = product(*weight, 1, weight->size());
  return gradients * 2 * product(*is_transposed ? *input : *gradient) * kernel;
}

// Where attention's arguments stand: queries, then keys and values.
struct AttentionForm {
  std::string_view name;
  std::size_t queries;
  std::size_t causal;
  bool has_heads_last;  // [batch, length, heads, width] in place of [batch, heads, length, width]
  std::size_t lengths;  // of sequences that are packed together: then the shapes do not say; SIZE_MAX: never
  double times;         // the backward pass has five products for two
};
constexpr std::array<AttentionForm, 7> kAttentions{
    {{"aten::scaled_dot_product_attention", 0, 5, false, SIZE_MAX, 1},
     {"aten::_scaled_dot_product_flash_attention", 0, 4, false, SIZE_MAX, 1},
     {"aten::_scaled_dot_product_efficient_attention", 0, 6, false, SIZE_MAX, 1},
     {"aten::_scaled_dot_product_cudnn_attention", 0, 6, false, SIZE_MAX, 1},
     {"aten::_flash_attention_forward", 0, 8, true, 3, 1},
     {"aten::_scaled_dot_product_flash_attention_backward", 1, 11, false, 6, 2.5},
     {"aten::_flash_attention_backward", 1, 11, true, 6, 2.5}}};

std::optional<double> attention_flops(const AttentionForm& form, const OperatorDetail& detail) {
  const Shape* const queries = shape_of(detail, form.queries);
  const Shape* const keys = shape_of(detail, form.queries + 1);
  const Shape* const values = shape_of(detail, form.queries + 2);
  const auto is_causal = truth_of(detail, form.causal);
  for (const Shape* shape : {queries, keys, values}) {
    if (shape == nullptr || shape->size() != 4) return std::nullopt;
  }
  if (!is_causal || (form.lengths != SIZE_MAX && shape_of(detail, form.lengths) != nullptr)) return std::nullopt;
  const auto at = [](const Shape& shape, std::size_t i) { return static_cast<double>(shape[i]); };
  const std::size_t length = form.has_heads_last ? 1 : 2;
  const std::size_t heads = form.has_heads_last ? 2 : 1;
  const double pairs = at(*queries, 0) * at(*queries, heads) * at(*queries, length) * at(*keys, length);
  return form.times * 2 * pairs * (at(*keys, 3) + at(*values, 3)) / (*is_causal ? 2 : 1);
}

std::optional<double> unchecked_flops(std::string_view name, const OperatorDetail& detail) {
  if (name == "aten::mm" || name == "aten::bmm") return matrix_flops(shape_of(detail, 0), shape_of(detail, 1));
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addbmm" || name == "aten::_addmm_activation")
    return matrix_flops(shape_of(detail, 1), shape_of(detail, 2));
  if (name == "aten::matmul") return matmul_flops(shape_of(detail, 0), shape_of(detail, 1));
  if (name == "aten::linear") return linear_flops(shape_of(detail, 0), shape_of(detail, 1));
  if (name == "aten::convolution_backward") return convolution_backward_flops(detail);
  for (const ConvolutionForm& form : kConvolutions) {
    if (name == form.name) return convolution_flops(form, detail);
  }
  for (const AttentionForm& form : kAttentions) {
    if (name == form.name) return attention_flops(form, detail);
  }
  return std::nullopt;
}

}  // namespace

OperatorDetail parse_operator_detail(std::string_view detail_untrusted) {
  OperatorDetail out;
  const Result<JsonDocument> parsed = JsonDocument::parse(detail_untrusted);
  if (!parsed.ok()) return out;
  JsonValue shapes = parsed->root()["Input Dims"];
  if (!shapes.exists()) shapes = parsed->root()["Input dims"];
  for (const JsonValue& input : shapes.items()) {
    Shape shape;
    for (const JsonValue& size : input.items()) {
      const auto number = size.integer();
      if (!number || *number < 0) {  // a list of tensors: none that anything is computed of
        shape.clear();
        break;
      }
      shape.push_back(*number);
    }
    out.shapes.push_back(std::move(shape));
  }
  for (const JsonValue& type : parsed->root()["Input type"].items()) out.types.push_back(text_of(type));
  for (const JsonValue& value : parsed->root()["Concrete Inputs"].items()) out.values.push_back(text_of(value));
  if (!out.shapes.empty()) out.shapes_text = shown(out.shapes);
  out.stack = text_of(parsed->root()["Call stack"]);
  return out;
}

CollectiveDetail parse_collective_detail(std::string_view detail_untrusted) {
  CollectiveDetail out;
  const Result<JsonDocument> parsed = JsonDocument::parse(detail_untrusted);
  if (!parsed.ok()) return out;
  const JsonValue root = parsed->root();
  out.name = text_of(root["Collective name"]);
  out.process_group = text_of(root["Process Group Name"]);
  out.description = text_of(root["Process Group Description"]);
  out.ranks = text_of(root["Process Group Ranks"]);
  out.dtype = text_of(root["dtype"]);
  out.group_size = root["Group size"].integer().value_or(-1);
  out.sequence = root["Seq"].integer().value_or(-1);
  out.in_elements = root["In msg nelems"].integer().value_or(-1);
  out.out_elements = root["Out msg nelems"].integer().value_or(-1);
  return out;
}

std::int64_t CollectiveDetail::bytes() const {
  const auto size = element_bytes(dtype);
  std::int64_t out = 0;
  if (!size || in_elements < 0 || __builtin_mul_overflow(in_elements, *size, &out)) return -1;
  return out;
}

std::optional<double> flops_of(std::string_view operator_name, const OperatorDetail& detail) {
  const auto flops = unchecked_flops(operator_name, detail);
  return flops && *flops <= kFlopsMax ? flops : std::nullopt;
}

std::optional<std::int64_t> element_bytes(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 26> kTypes{
      {{"float", 4},         {"double", 8},   {"c10::Half", 2}, {"c10::BFloat16", 2}, {"long int", 8},
       {"long", 8},          {"int", 4},      {"short", 2},     {"short int", 2},     {"signed char", 1},
       {"unsigned char", 1}, {"char", 1},     {"bool", 1},      {"Float", 4},         {"Double", 8},
       {"Half", 2},          {"BFloat16", 2}, {"Long", 8},      {"Int", 4},           {"Short", 2},
       {"Char", 1},          {"Byte", 1},     {"Bool", 1},      {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
       {"ComplexFloat", 8}}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return std::nullopt;
}

}  // namespace hotlap
