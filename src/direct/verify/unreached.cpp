// SPDX-License-Identifier: Apache-2.0
#include "direct/verify/unreached.h"

#include <algorithm>
#include <variant>

namespace cyxla::direct {
namespace {

std::string contents_of(const Steps& block) {
  for (const Step& step : block) {
    if (std::holds_alternative<CopyStep>(step.what)) {
      return "copies memory";
    }
    if (std::holds_alternative<WhileStep>(step.what)) {
      return "has a loop";
    }
    if (std::holds_alternative<ConditionalStep>(step.what)) {
      return "has a conditional";
    }
  }
  return {};
}

class Search {
 public:
  Search(const Context& context, std::vector<UnreachedBlock>& found)
      : context_(context), found_(found) {}

  // Searches a block that has run.
  void look_into(const Steps& block) {
    for (const Step& step : block) {
      if (const auto* loop = std::get_if<WhileStep>(&step.what)) {
        // A loop with a trip count skips its condition; others run it at least once.
        if (!loop->trip_count) {
          look_into(loop->condition);
        }
        if (loop->trip_count != 0) {
          look_at(loop->body, step, 0);
        }
      } else if (const auto* conditional = std::get_if<ConditionalStep>(&step.what)) {
        for (std::size_t i = 0; i < conditional->branches.size(); ++i) {
          look_at(conditional->branches[i], step, i);
        }
      }
    }
  }

 private:
  void look_at(const Steps& block, const Step& step, std::size_t branch) {
    if (context_.has_run(block)) {
      look_into(block);
    } else if (!block.empty()) {
      found_.push_back({&block, &step, branch, contents_of(block)});
    }
  }

  const Context& context_;
  std::vector<UnreachedBlock>& found_;
};

}  // namespace

std::string UnreachedBlock::name() const {
  const auto* conditional = std::get_if<ConditionalStep>(&step->what);
  std::string text = "the body of the loop";
  if (conditional != nullptr && conditional->is_predicate) {
    text = std::string("the branch for ") + (branch == 0 ? "true" : "false");
  } else if (conditional != nullptr) {
    text = "branch " + std::to_string(branch);
  }
  if (conditional != nullptr) {
    text += " of the conditional";
  }
  text += " in step " + std::to_string(step->number);
  return step->instruction.empty() ? text : text + " (" + step->instruction + ")";
}

std::vector<UnreachedBlock> unreached_blocks(const Plan& plan, const Context& context) {
  std::vector<UnreachedBlock> found;
  Search(context, found).look_into(plan.steps);
  return found;
}

std::size_t max_branches(const Steps& steps) {
  std::size_t most = 0;
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<WhileStep>(&step.what)) {
      most = std::max({most, max_branches(loop->condition), max_branches(loop->body)});
    } else if (const auto* conditional = std::get_if<ConditionalStep>(&step.what)) {
      most = std::max(most, conditional->branches.size());
      for (const Steps& branch : conditional->branches) {
        most = std::max(most, max_branches(branch));
      }
    }
  }
  return most;
}

}  // namespace cyxla::direct
