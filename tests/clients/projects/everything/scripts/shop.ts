export const title = /Shop/
