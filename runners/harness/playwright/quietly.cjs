'use strict';

/** Without a step in the report and without a line in the trace. */
function quietly(object, act) {
  return object._wrapApiCall ? object._wrapApiCall(act, { internal: true }) : act();
}

module.exports = { quietly };
