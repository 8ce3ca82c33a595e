// An objective for the time to the first chunk of each tier, by the label `tier` of the requests.

#include <stdlib.h>

#include "veeksha.h"

// An open check: the text of its configuration, `{"gold": 0.5, "silver": 2}`.
struct exports_slo_check_checker_t {
  double gold;
  double silver;
};

void exports_slo_check_describe(exports_slo_check_descriptor_t *ret) {
  *ret = veeksha_descriptor("tier_bounds", "0.1.0", "the P99 of the time to the first chunk of each tier",
                            "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                            "\"gold\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"default\":0.5},"
                            "\"silver\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"default\":2}}}");
}

bool exports_slo_check_static_checker_open(veeksha_string_t *config, exports_slo_check_own_checker_t *ret,
                                           exports_slo_check_error_t *err) {
  exports_slo_check_checker_t *checker = calloc(1, sizeof *checker);
  veeksha_json_t json = veeksha_json(*config);
  checker->gold = veeksha_json_number(veeksha_member(json, "gold"), 0.5);
  checker->silver = veeksha_json_number(veeksha_member(json, "silver"), 2);
  veeksha_string_free(config);
  // A rule that a schema cannot express.
  if (checker->gold > checker->silver) {
    free(checker);
    return veeksha_fail_config(err, "/gold", "the bound of gold is above that of silver");
  }
  *ret = exports_slo_check_checker_new(checker);
  return true;
}

void exports_slo_check_checker_destructor(exports_slo_check_checker_t *checker) { free(checker); }

static void judge(veeksha_results_borrow_results_t results, const char *tier, double threshold,
                  exports_slo_check_list_verdict_t *verdicts) {
  veeksha_string_t metric = {(uint8_t *)"ttfc", 4};
  veeksha_list_tuple2_string_string_t filter = {NULL, 0};
  veeksha_add_pair(&filter, "tier", tier);
  double observed = 0;
  // Without requests of this tier there is nothing to observe, and nothing that misses the bound.
  bool is_some = veeksha_results_method_results_percentile(results, &metric, 99, &filter, &observed);
  veeksha_list_tuple2_string_string_free(&filter);
  *VEEKSHA_PUSH(verdicts) = (exports_slo_check_verdict_t){
      .name = veeksha_format("P99 of ttfc, %s", tier),
      .met = !is_some || observed <= threshold,
      .observed = {is_some, observed},
      .threshold = threshold,
  };
}

bool exports_slo_check_method_checker_check(exports_slo_check_checker_t *self, exports_slo_check_own_results_t results,
                                            exports_slo_check_list_verdict_t *ret, exports_slo_check_error_t *err) {
  (void)err;
  *ret = (exports_slo_check_list_verdict_t){NULL, 0};
  veeksha_results_borrow_results_t borrowed = veeksha_results_borrow_results(results);
  judge(borrowed, "gold", self->gold, ret);
  judge(borrowed, "silver", self->silver, ret);
  veeksha_results_results_drop_own(results);
  return true;
}
